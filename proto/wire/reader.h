/*
 * reader.h - a bounded msgpack reader with a sticky error. Allocates nothing, never trusts a count,
 * never reads past the end, never recurses deeper than 16.
 *
 * After the first error every read returns 0/empty/false and `failed` stays true, so a decoder reads
 * all its fields and checks once. Integers of any msgpack width are accepted; negative ones fail a
 * u64 read. Compare lengths (left < n), never pointers.
 */
#ifndef DT_WIRE_READER_H
#define DT_WIRE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_reader {
    const unsigned char *p; /* borrowed */
    size_t left;
    bool failed;
};

struct dt_bytes { /* a view into the message; borrowed */
    const unsigned char *p;
    uint32_t len;
};

void dt_reader_init(struct dt_reader *r, const void *data, size_t bytes);
uint64_t dt_read_u64(struct dt_reader *r);
uint64_t dt_read_u64_max(struct dt_reader *r, uint64_t max); /* greater is an error */
int64_t dt_read_i64(struct dt_reader *r);
double dt_read_double(struct dt_reader *r); /* float32, float64 or an integer */
bool dt_read_bool(struct dt_reader *r);
/* The number of elements; each element takes a byte at least, so a count above `left` is an error. */
uint32_t dt_read_array(struct dt_reader *r, uint32_t max);
uint32_t dt_read_map(struct dt_reader *r, uint32_t max);
struct dt_bytes dt_read_str(struct dt_reader *r, uint32_t max);
struct dt_bytes dt_read_bin(struct dt_reader *r, uint32_t max);
/* Copies a str of at most out_bytes-1 bytes and ends it with NUL; a NUL inside is an error. */
void dt_read_cstr(struct dt_reader *r, char *out, size_t out_bytes);
void dt_read_exact_bin(struct dt_reader *r, void *out, uint32_t bytes);
bool dt_read_nil(struct dt_reader *r);  /* consumes a nil if the next object is one */
void dt_read_skip(struct dt_reader *r); /* one whole object, nested ones too */

enum dt_kind {
    DT_KIND_NONE,
    DT_KIND_NIL,
    DT_KIND_BOOL,
    DT_KIND_INT,
    DT_KIND_FLOAT,
    DT_KIND_STR,
    DT_KIND_BIN,
    DT_KIND_ARRAY,
    DT_KIND_MAP,
    DT_KIND_EXT
};
enum dt_kind dt_read_peek(const struct dt_reader *r); /* NONE at the end or after an error */

#endif
