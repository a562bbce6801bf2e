/*
 * buffer.c - a growable run of bytes. One thread an object.
 */
#include "proto/base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
dt_buffer_deinit(struct dt_buffer *b)
{
    free(b->data);
    memset(b, 0, sizeof(*b));
}

void
dt_buffer_clear(struct dt_buffer *b)
{
    b->len = 0;
    b->failed = false;
}

/* Room for `more` bytes and a NUL behind them. */
static bool
reserve(struct dt_buffer *b, size_t more)
{
    unsigned char *data;
    size_t cap;

    if (b->failed || more > SIZE_MAX / 4 - b->len || (b->limit && b->len + more > b->limit)) {
        b->failed = true;
        return false;
    }
    if (b->len + more < b->cap)
        return true;
    cap = b->cap ? b->cap : 64;
    while (cap <= b->len + more)
        cap *= 2;
    data = realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

bool
dt_buffer_append(struct dt_buffer *b, const void *data, size_t len)
{
    if (!reserve(b, len))
        return false;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return true;
}

bool
dt_buffer_printf(struct dt_buffer *b, const char *fmt, ...)
{
    va_list ap, again;
    bool ok;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    ok = n >= 0 && reserve(b, (size_t)n);
    if (ok) {
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return ok;
}

const char *
dt_buffer_str(struct dt_buffer *b)
{
    if (!b->data)
        return "";
    b->data[b->len] = 0;
    return (const char *)b->data;
}
