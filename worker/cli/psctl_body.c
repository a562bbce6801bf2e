/*
 * psctl_body.c - from the msgpack body of psd's answers to JSON. One thread.
 */
#include "worker/cli/psctl_body.h"

#include <string.h>

#include "proto/wire/limits.h"
#include "proto/wire/reader.h"

#define MAX_DEPTH 12

static json_t *decode_value(struct dt_reader *r, int depth);

static json_t *
decode_string(struct dt_reader *r)
{
    struct dt_bytes s = dt_read_str(r, DT_MAX_BODY_BYTES);
    json_t *v = r->failed ? NULL : json_stringn((const char *)s.p, s.len);

    return v || r->failed ? v : json_string("?"); /* not UTF-8 */
}

static json_t *
decode_integer(struct dt_reader *r)
{
    struct dt_reader before = *r;
    int64_t negative;
    uint64_t v = dt_read_u64(r);

    if (!r->failed)
        return v <= INT64_MAX ? json_integer((json_int_t)v) : json_null();
    *r = before;
    negative = dt_read_i64(r);
    return r->failed ? NULL : json_integer((json_int_t)negative);
}

static json_t *
decode_array(struct dt_reader *r, int depth)
{
    uint32_t i, n = dt_read_array(r, DT_MAX_BODY_BYTES);
    json_t *a = json_array();

    for (i = 0; i < n && a; i++) {
        json_t *v = decode_value(r, depth + 1);

        if (!v || json_array_append_new(a, v) != 0) {
            json_decref(a);
            return NULL;
        }
    }
    return a;
}

static json_t *
decode_member(struct dt_reader *r, const char *key, int depth)
{
    char hex[20];

    if (strcmp(key, "incarnation") != 0 || dt_read_peek(r) != DT_KIND_INT)
        return decode_value(r, depth + 1);
    snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)dt_read_u64(r));
    return json_string(hex);
}

static json_t *
decode_map(struct dt_reader *r, int depth)
{
    uint32_t i, n = dt_read_map(r, DT_MAX_BODY_BYTES);
    json_t *o = json_object();
    char key[DT_MAX_NAME + 1];

    for (i = 0; i < n && o; i++) {
        json_t *v = NULL;

        dt_read_cstr(r, key, sizeof(key));
        if (!r->failed)
            v = decode_member(r, key, depth);
        if (!v || json_object_set_new(o, key, v) != 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

static json_t *
decode_scalar(struct dt_reader *r)
{
    switch (dt_read_peek(r)) {
    case DT_KIND_BOOL:
        return json_boolean(dt_read_bool(r));
    case DT_KIND_INT:
        return decode_integer(r);
    case DT_KIND_FLOAT:
        return json_real(dt_read_double(r));
    case DT_KIND_STR:
        return decode_string(r);
    case DT_KIND_NONE:
        return NULL;
    default: /* nil, and kinds that JSON does not have */
        dt_read_skip(r);
        return json_null();
    }
}

/* A new reference, or NULL at an error. */
static json_t *
decode_value(struct dt_reader *r, int depth)
{
    enum dt_kind kind = dt_read_peek(r);
    json_t *v;

    if (depth > MAX_DEPTH)
        return NULL;
    if (kind == DT_KIND_ARRAY)
        v = decode_array(r, depth);
    else if (kind == DT_KIND_MAP)
        v = decode_map(r, depth);
    else
        v = decode_scalar(r);
    if (v && r->failed) {
        json_decref(v);
        return NULL;
    }
    return v;
}

json_t *
body_decode(const struct dt_buffer *body)
{
    struct dt_reader r;
    json_t *v;

    dt_reader_init(&r, body->data, body->len);
    v = decode_value(&r, 0);
    if (!json_is_object(v)) {
        json_decref(v);
        return NULL;
    }
    return v;
}

const char *
body_text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

long long
body_number(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}
