/*
 * reader.c - the bounded msgpack reader.
 *
 * Invariants: `left` never grows; nothing before `p` is looked at again; after the first error
 * `left` is 0, so that every later read fails at once. No allocation, no recursion. Any thread.
 */
#include "proto/wire/reader.h"

#include <string.h>

#define MAX_DEPTH 16

/* What stands at the reader: its kind, the bytes of the length or the number behind the first byte,
 * and for the fix types the value that is in the first byte. */
struct lead {
    enum dt_kind kind;
    unsigned char width; /* 0: `value` is in the first byte */
    int8_t value;
};

static struct lead
lead_of_high(unsigned char c)
{
    static const struct lead table[] = {
        [0x00] = {DT_KIND_NIL, 0, 0},   [0x01] = {DT_KIND_NONE, 0, 0},
        [0x02] = {DT_KIND_BOOL, 0, 0},  [0x03] = {DT_KIND_BOOL, 0, 1},
        [0x04] = {DT_KIND_BIN, 1, 0},   [0x05] = {DT_KIND_BIN, 2, 0},
        [0x06] = {DT_KIND_BIN, 4, 0},   [0x07] = {DT_KIND_EXT, 1, 0},
        [0x08] = {DT_KIND_EXT, 2, 0},   [0x09] = {DT_KIND_EXT, 4, 0},
        [0x0a] = {DT_KIND_FLOAT, 4, 0}, [0x0b] = {DT_KIND_FLOAT, 8, 0},
        [0x0c] = {DT_KIND_INT, 1, 0},   [0x0d] = {DT_KIND_INT, 2, 0},
        [0x0e] = {DT_KIND_INT, 4, 0},   [0x0f] = {DT_KIND_INT, 8, 0},
        [0x10] = {DT_KIND_INT, 1, 0},   [0x11] = {DT_KIND_INT, 2, 0},
        [0x12] = {DT_KIND_INT, 4, 0},   [0x13] = {DT_KIND_INT, 8, 0},
        [0x14] = {DT_KIND_EXT, 0, 1},   [0x15] = {DT_KIND_EXT, 0, 2},
        [0x16] = {DT_KIND_EXT, 0, 4},   [0x17] = {DT_KIND_EXT, 0, 8},
        [0x18] = {DT_KIND_EXT, 0, 16},  [0x19] = {DT_KIND_STR, 1, 0},
        [0x1a] = {DT_KIND_STR, 2, 0},   [0x1b] = {DT_KIND_STR, 4, 0},
        [0x1c] = {DT_KIND_ARRAY, 2, 0}, [0x1d] = {DT_KIND_ARRAY, 4, 0},
        [0x1e] = {DT_KIND_MAP, 2, 0},   [0x1f] = {DT_KIND_MAP, 4, 0},
    };

    return table[c - 0xc0];
}

static struct lead
lead_of(unsigned char c)
{
    if (c < 0x80)
        return (struct lead){DT_KIND_INT, 0, (int8_t)c};
    if (c < 0x90)
        return (struct lead){DT_KIND_MAP, 0, (int8_t)(c & 0x0f)};
    if (c < 0xa0)
        return (struct lead){DT_KIND_ARRAY, 0, (int8_t)(c & 0x0f)};
    if (c < 0xc0)
        return (struct lead){DT_KIND_STR, 0, (int8_t)(c & 0x1f)};
    if (c >= 0xe0)
        return (struct lead){DT_KIND_INT, 0, (int8_t)((int)c - 256)};
    return lead_of_high(c);
}

static void
fail(struct dt_reader *r)
{
    r->failed = true;
    r->left = 0;
}

void
dt_reader_init(struct dt_reader *r, const void *data, size_t bytes)
{
    r->p = data;
    r->left = data ? bytes : 0;
    r->failed = false;
}

enum dt_kind
dt_read_peek(const struct dt_reader *r)
{
    return r->left ? lead_of(*r->p).kind : DT_KIND_NONE;
}

static const unsigned char *
take(struct dt_reader *r, size_t n)
{
    const unsigned char *p = r->p;

    if (r->failed || r->left < n) {
        fail(r);
        return NULL;
    }
    r->p += n;
    r->left -= n;
    return p;
}

static uint64_t
take_big_endian(struct dt_reader *r, unsigned width)
{
    const unsigned char *p = take(r, width);
    uint64_t v = 0;
    unsigned i;

    if (!p)
        return 0;
    for (i = 0; i < width; i++)
        v = v << 8 | p[i];
    return v;
}

/* The first byte, which must be of `kind`. */
static bool
take_lead(struct dt_reader *r, enum dt_kind kind, struct lead *lead, unsigned char *first)
{
    const unsigned char *p = take(r, 1);

    if (!p)
        return false;
    *first = *p;
    *lead = lead_of(*p);
    if (lead->kind != kind || kind == DT_KIND_NONE) {
        fail(r);
        return false;
    }
    return true;
}

struct integer {
    bool negative;
    uint64_t bits; /* two's complement when negative */
};

static struct integer
take_integer(struct dt_reader *r, struct lead lead, unsigned char first)
{
    struct integer v = {false, 0};
    unsigned shift = 64u - 8u * lead.width;
    bool is_signed = first >= 0xd0 && first <= 0xd3;

    if (lead.width == 0) {
        v.bits = (uint64_t)(int64_t)lead.value;
        is_signed = true;
    } else {
        v.bits = take_big_endian(r, lead.width);
        if (is_signed)
            v.bits = (uint64_t)((int64_t)(v.bits << shift) >> shift);
    }
    v.negative = is_signed && v.bits >> 63;
    return v;
}

static struct integer
read_integer(struct dt_reader *r)
{
    struct integer v = {false, 0};
    struct lead lead;
    unsigned char first;

    if (!take_lead(r, DT_KIND_INT, &lead, &first))
        return v;
    v = take_integer(r, lead, first);
    if (r->failed)
        v = (struct integer){false, 0};
    return v;
}

uint64_t
dt_read_u64(struct dt_reader *r)
{
    return dt_read_u64_max(r, UINT64_MAX);
}

uint64_t
dt_read_u64_max(struct dt_reader *r, uint64_t max)
{
    struct integer v = read_integer(r);

    if (v.negative || v.bits > max) {
        fail(r);
        return 0;
    }
    return v.bits;
}

int64_t
dt_read_i64(struct dt_reader *r)
{
    struct integer v = read_integer(r);

    if (!v.negative && v.bits > INT64_MAX) {
        fail(r);
        return 0;
    }
    return (int64_t)v.bits;
}

static double
read_float(struct dt_reader *r)
{
    struct lead lead;
    unsigned char first;
    uint64_t bits;
    double d;
    float f;

    if (!take_lead(r, DT_KIND_FLOAT, &lead, &first))
        return 0;
    bits = take_big_endian(r, lead.width);
    if (lead.width == 4) {
        uint32_t half = (uint32_t)bits;

        memcpy(&f, &half, sizeof(f));
        return (double)f;
    }
    memcpy(&d, &bits, sizeof(d));
    return d;
}

double
dt_read_double(struct dt_reader *r)
{
    struct integer v;

    if (dt_read_peek(r) == DT_KIND_FLOAT)
        return read_float(r);
    v = read_integer(r);
    return v.negative ? (double)(int64_t)v.bits : (double)v.bits;
}

bool
dt_read_bool(struct dt_reader *r)
{
    struct lead lead;
    unsigned char first;

    return take_lead(r, DT_KIND_BOOL, &lead, &first) && lead.value;
}

bool
dt_read_nil(struct dt_reader *r)
{
    if (dt_read_peek(r) != DT_KIND_NIL)
        return false;
    return take(r, 1) != NULL;
}

/* The length or count of an object of `kind`. */
static uint32_t
read_count(struct dt_reader *r, enum dt_kind kind, uint32_t max)
{
    struct lead lead;
    unsigned char first;
    uint64_t n;

    if (!take_lead(r, kind, &lead, &first))
        return 0;
    n = lead.width ? take_big_endian(r, lead.width) : (uint64_t)lead.value;
    if (n > max) {
        fail(r);
        return 0;
    }
    return (uint32_t)n;
}

/* A count that the bytes left cannot hold is an error, before anybody allocates for it. */
static uint32_t
read_container(struct dt_reader *r, enum dt_kind kind, uint32_t max)
{
    uint32_t n = read_count(r, kind, max);

    if (n > (kind == DT_KIND_MAP ? r->left / 2 : r->left)) {
        fail(r);
        return 0;
    }
    return n;
}

uint32_t
dt_read_array(struct dt_reader *r, uint32_t max)
{
    return read_container(r, DT_KIND_ARRAY, max);
}

uint32_t
dt_read_map(struct dt_reader *r, uint32_t max)
{
    return read_container(r, DT_KIND_MAP, max);
}

static struct dt_bytes
read_bytes(struct dt_reader *r, enum dt_kind kind, uint32_t max)
{
    uint32_t n = read_count(r, kind, max);
    const unsigned char *p = take(r, n);

    return (struct dt_bytes){p ? p : (const unsigned char *)"", p ? n : 0};
}

struct dt_bytes
dt_read_str(struct dt_reader *r, uint32_t max)
{
    return read_bytes(r, DT_KIND_STR, max);
}

struct dt_bytes
dt_read_bin(struct dt_reader *r, uint32_t max)
{
    return read_bytes(r, DT_KIND_BIN, max);
}

void
dt_read_cstr(struct dt_reader *r, char *out, size_t out_bytes)
{
    struct dt_bytes s = dt_read_str(r, (uint32_t)(out_bytes - 1));

    if (memchr(s.p, 0, s.len)) {
        fail(r);
        s.len = 0;
    }
    memcpy(out, s.p, s.len);
    out[s.len] = '\0';
}

void
dt_read_exact_bin(struct dt_reader *r, void *out, uint32_t bytes)
{
    struct dt_bytes b = dt_read_bin(r, bytes);

    memset(out, 0, bytes);
    if (b.len != bytes)
        fail(r);
    else if (bytes)
        memcpy(out, b.p, bytes);
}

/* Skips one object's own bytes; returns how many objects it holds. */
static uint64_t
skip_one(struct dt_reader *r)
{
    enum dt_kind kind = dt_read_peek(r);
    unsigned char first;
    struct lead lead;

    switch (kind) {
    case DT_KIND_ARRAY:
        return dt_read_array(r, UINT32_MAX);
    case DT_KIND_MAP:
        return 2 * (uint64_t)dt_read_map(r, UINT32_MAX);
    case DT_KIND_STR:
    case DT_KIND_BIN:
        read_bytes(r, kind, UINT32_MAX);
        return 0;
    case DT_KIND_EXT:
        take(r, (size_t)read_count(r, kind, UINT32_MAX) + 1);
        return 0;
    default:
        if (take_lead(r, kind, &lead, &first))
            take(r, lead.width);
        return 0;
    }
}

void
dt_read_skip(struct dt_reader *r)
{
    uint64_t open[MAX_DEPTH]; /* objects still to skip, a level */
    unsigned depth = 0;
    uint64_t inner;

    do {
        inner = skip_one(r);
        if (inner && depth == MAX_DEPTH)
            fail(r);
        else if (inner)
            open[depth++] = inner;
        else
            while (depth && --open[depth - 1] == 0)
                depth--;
        /* A container just opened is counted in its parent when its last element has gone. */
    } while (depth && !r->failed);
}
