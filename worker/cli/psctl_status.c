/*
 * psctl_status.c - what `psctl status` shows. One thread.
 *
 * The body comes from psd but carries names that workers chose: text for people has its control
 * characters replaced.
 */
#include "worker/cli/psctl_status.h"

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

/* Names come from workers: no control characters to the terminal. */
static void
print_clean(const char *s, FILE *out)
{
    for (; *s; s++)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, out);
}

static void
print_ranks(const json_t *ranks, FILE *out)
{
    size_t i;
    json_t *v;

    json_array_foreach(ranks, i, v)
        fprintf(out, "%s%lld", i ? ", " : "", (long long)json_integer_value(v));
}

static void
print_member(const json_t *m, FILE *out)
{
    fprintf(out, "  rank %-4lld %-8s", body_number(m, "rank"), body_text(m, "state"));
    if (body_text(m, "host")[0]) {
        fputs(" ", out);
        print_clean(body_text(m, "host"), out);
        fprintf(out, " pid %lld", body_number(m, "pid"));
    }
    if (body_number(m, "first") > 0)
        fprintf(out, ", from step %lld", body_number(m, "first"));
    if (json_is_integer(json_object_get(m, "last")))
        fprintf(out, ", last step %lld", body_number(m, "last"));
    if (body_number(m, "silent_ms") >= 1000)
        fprintf(out, ", silent for %.1f s", (double)body_number(m, "silent_ms") / 1000);
    fputc('\n', out);
}

static void
print_wait(const json_t *w, FILE *out)
{
    const json_t *ranks = json_object_get(w, "ranks");

    fprintf(out, "  rank %lld waits", body_number(w, "rank"));
    if (body_text(w, "variable")[0]) {
        fputs(" at ", out);
        print_clean(body_text(w, "variable"), out);
        fprintf(out, "[%lld]", body_number(w, "slice"));
    }
    if (strcmp(body_text(w, "reason"), "init") == 0)
        fputs(" for initial values", out);
    else if (strcmp(body_text(w, "reason"), "global_step") == 0)
        fprintf(out, " for global step %lld", body_number(w, "step"));
    else
        fprintf(out, " for step %lld", body_number(w, "step"));
    if (json_array_size(ranks) > 0) {
        fputs(json_array_size(ranks) == 1 ? ": rank " : ": ranks ", out);
        print_ranks(ranks, out);
    }
    fputc('\n', out);
}

/* "key=value" of all counters that are not 0. */
static void
print_counters(const json_t *counters, FILE *out)
{
    const char *key;
    json_t *v;
    int n = 0;

    json_object_foreach((json_t *)(uintptr_t)counters, key, v)
    {
        if (json_integer_value(v) == 0)
            continue;
        fputs(n++ ? " " : "  ", out);
        print_clean(key, out);
        fprintf(out, "=%lld", (long long)json_integer_value(v));
    }
    if (n)
        fputc('\n', out);
}

static void
print_job(const json_t *job, FILE *out)
{
    const json_t *list;
    size_t i;
    json_t *v;

    fputs("job ", out);
    print_clean(body_text(job, "name"), out);
    fprintf(out, ": %s, step %lld, %lld workers expected", body_text(job, "state"),
            body_number(job, "step"), body_number(job, "workers"));
    if (body_text(job, "reason")[0]) {
        fputs(" (", out);
        print_clean(body_text(job, "reason"), out);
        fputs(")", out);
    }
    fputc('\n', out);
    list = json_object_get(job, "members");
    json_array_foreach(list, i, v) print_member(v, out);
    list = json_object_get(job, "waiting");
    json_array_foreach(list, i, v) print_wait(v, out);
    print_counters(json_object_get(job, "counters"), out);
}

void
status_print(const json_t *status, FILE *out)
{
    const json_t *jobs = json_object_get(status, "jobs");
    size_t i;
    json_t *v;

    fprintf(out, "psd %s, incarnation %s, %lld shards, %lld sessions, %zu jobs\n",
            body_text(status, "version"), body_text(status, "incarnation"),
            body_number(status, "shards"), body_number(status, "sessions"), json_array_size(jobs));
    json_array_foreach(jobs, i, v) print_job(v, out);
}
