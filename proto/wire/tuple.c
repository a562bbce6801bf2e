/*
 * tuple.c - arrays read as rows of fields, and safe texts. Any thread.
 */
#include "proto/wire/tuple.h"

#include <string.h>

void
dt_tuple_open(struct dt_tuple *t, struct dt_reader *r)
{
    t->r = r;
    t->n_left = dt_read_array(r, DT_TUPLE_FIELDS);
}

bool
dt_tuple_next(struct dt_tuple *t)
{
    if (t->r->failed || t->n_left == 0)
        return false;
    t->n_left--;
    return true;
}

uint64_t
dt_tuple_u64(struct dt_tuple *t, uint64_t max, uint64_t def)
{
    if (!dt_tuple_next(t) || dt_read_nil(t->r))
        return def;
    return dt_read_u64_max(t->r, max);
}

void
dt_tuple_close(struct dt_tuple *t)
{
    while (dt_tuple_next(t))
        dt_read_skip(t->r);
}

void
dt_read_text(struct dt_reader *r, char *out, size_t out_bytes)
{
    unsigned char *p;

    dt_read_cstr(r, out, out_bytes);
    for (p = (unsigned char *)out; *p; p++) {
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
}

bool
dt_is_name(const char *s)
{
    static const char legal[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-";

    return s[0] && s[strspn(s, legal)] == '\0';
}

bool
dt_is_one_object(const void *data, size_t bytes)
{
    struct dt_reader r;

    dt_reader_init(&r, data, bytes);
    dt_read_skip(&r);
    return !r.failed && r.left == 0;
}
