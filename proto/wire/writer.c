/*
 * writer.c - packing with msgpack-c into a dt_buffer; the only place that names msgpack_.
 *
 * Invariant: integers, strings and counts take their shortest form, floats stay float32 or float64;
 * so equal values give equal bytes (the fingerprint of declarations needs it). Any thread.
 */
#include "proto/wire/writer.h"

#include <msgpack.h>
#include <string.h>

static int
append(void *arg, const char *data, size_t bytes)
{
    return dt_buffer_append(arg, data, bytes) ? 0 : -1;
}

static msgpack_packer
packer_of(struct dt_buffer *b)
{
    msgpack_packer pk;

    msgpack_packer_init(&pk, b, append);
    return pk;
}

void
dt_write_u64(struct dt_buffer *b, uint64_t v)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_uint64(&pk, v);
}

void
dt_write_i64(struct dt_buffer *b, int64_t v)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_int64(&pk, v);
}

void
dt_write_float(struct dt_buffer *b, float v)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_float(&pk, v);
}

void
dt_write_double(struct dt_buffer *b, double v)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_double(&pk, v);
}

void
dt_write_bool(struct dt_buffer *b, bool v)
{
    msgpack_packer pk = packer_of(b);

    if (v)
        msgpack_pack_true(&pk);
    else
        msgpack_pack_false(&pk);
}

void
dt_write_nil(struct dt_buffer *b)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_nil(&pk);
}

void
dt_write_array(struct dt_buffer *b, uint32_t n)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_array(&pk, n);
}

void
dt_write_map(struct dt_buffer *b, uint32_t n)
{
    msgpack_packer pk = packer_of(b);

    msgpack_pack_map(&pk, n);
}

void
dt_write_str(struct dt_buffer *b, const char *s)
{
    msgpack_packer pk = packer_of(b);
    size_t n = strlen(s);

    if (msgpack_pack_str(&pk, n) == 0 && n)
        msgpack_pack_str_body(&pk, s, n);
}

void
dt_write_bin(struct dt_buffer *b, const void *p, uint32_t bytes)
{
    msgpack_packer pk = packer_of(b);

    if (msgpack_pack_bin(&pk, bytes) == 0 && bytes)
        msgpack_pack_bin_body(&pk, p, bytes);
}
