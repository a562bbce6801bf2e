/*
 * buffer.h - a growable run of bytes. Zero-initialise; dt_buffer_deinit frees.
 * Append functions return false when memory is short or `limit` (0 = none) would be passed; the
 * buffer then is unchanged and its sticky `failed` flag is set.
 */
#ifndef DT_BASE_BUFFER_H
#define DT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct dt_buffer {
    unsigned char *data; /* owned */
    size_t len;
    size_t cap;
    size_t limit;
    bool failed;
};

void dt_buffer_deinit(struct dt_buffer *b);
void dt_buffer_clear(struct dt_buffer *b); /* keeps the memory */
bool dt_buffer_append(struct dt_buffer *b, const void *data, size_t len);
bool dt_buffer_printf(struct dt_buffer *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The content as a C string (a NUL is kept behind the data); "" when empty. Borrowed until the next call. */
const char *dt_buffer_str(struct dt_buffer *b);

#endif
