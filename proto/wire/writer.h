/*
 * writer.h - packing with msgpack-c into a dt_buffer. The only place that names msgpack_.
 * Errors (memory, the buffer's limit) are sticky in buffer->failed.
 */
#ifndef DT_WIRE_WRITER_H
#define DT_WIRE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/buffer.h"

void dt_write_u64(struct dt_buffer *b, uint64_t v);
void dt_write_i64(struct dt_buffer *b, int64_t v);
void dt_write_float(struct dt_buffer *b, float v);
void dt_write_double(struct dt_buffer *b, double v);
void dt_write_bool(struct dt_buffer *b, bool v);
void dt_write_nil(struct dt_buffer *b);
void dt_write_array(struct dt_buffer *b, uint32_t n);
void dt_write_map(struct dt_buffer *b, uint32_t n);
void dt_write_str(struct dt_buffer *b, const char *s);
void dt_write_bin(struct dt_buffer *b, const void *p, uint32_t bytes);

#endif
