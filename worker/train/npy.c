/*
 * npy.c - see npy.h and NumPy's "NEP 1": "\x93NUMPY", version, header length, header, elements.
 *
 * Invariant: memory is one header and one run of elements; the header's shape is multiplied in 128 bits
 * and compared with the size of the source where that is known. Threads: any; nothing is shared.
 */
#include "worker/train/npy.h"

#include <stdlib.h>
#include <string.h>

#define RUN_ELEMENTS 4096u
#define MAX_BYTES (UINT64_C(1) << 48)

static enum dt_status
cut(const struct npy_source *src, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA,
                   "%s: ends at offset %llu, inside %s: the file was cut, get it again", src->name,
                   (unsigned long long)src->offset, what);
}

static enum dt_status
read_exactly(struct npy_source *src, void *buf, size_t n, const char *what, struct dt_error *err)
{
    size_t got;
    enum dt_status s = src->read(src->arg, buf, n, &got, err);

    if (s != DT_OK)
        return s;
    src->offset += got;
    return got == n ? DT_OK : cut(src, what, err);
}

static enum dt_status
check_magic(const struct npy_source *src, const unsigned char *b, struct dt_error *err)
{
    if (memcmp(b, "\x93NUMPY", 6) != 0)
        return dt_fail(
            err, DT_E_DATA,
            "%s: starts with %02x %02x, a NumPy array with 93 4e (a bare pickle is never "
            "read): save it by numpy.save",
            src->name, b[0], b[1]);
    if ((b[6] != 1 && b[6] != 2) || b[7] != 0)
        return dt_fail(err, DT_E_DATA,
                       "%s: is of format %u.%u, read are 1.0 and 2.0: save it again", src->name,
                       b[6], b[7]);
    return DT_OK;
}

static enum dt_status
check_size(const struct npy_source *src, struct npy_header *h, struct dt_error *err)
{
    unsigned __int128 bytes = h->item_bytes;

    h->elements = 1;
    for (uint32_t i = 0; i < h->n_dims; i++) {
        if (h->dims[i] == 0)
            return dt_fail(err, DT_E_DATA, "%s: size %u of its shape is 0: it holds no rows",
                           src->name, i + 1);
        bytes *= h->dims[i]; /* below 2^48 * 2^64 */
        if (bytes > MAX_BYTES)
            return dt_fail(err, DT_E_DATA,
                           "%s: its shape claims more than 2^48 bytes: the file is damaged, get it "
                           "again",
                           src->name);
        h->elements *= h->dims[i];
    }
    uint64_t claimed = h->header_bytes + (uint64_t)bytes;
    if (src->bytes == NPY_SIZE_UNKNOWN || src->bytes == claimed)
        return DT_OK;
    return dt_fail(err, DT_E_DATA,
                   "%s: has %llu bytes, its header claims %llu: the file was cut or is not whole, "
                   "get it again",
                   src->name, (unsigned long long)src->bytes, (unsigned long long)claimed);
}

/* The header's text of n bytes, NUL-terminated. */
static enum dt_status
read_text(struct npy_source *src, struct npy_header *h, uint32_t n, struct dt_error *err)
{
    char *text = malloc((size_t)n + 1);

    if (!text)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", src->name);
    enum dt_status s = read_exactly(src, text, n, "its header", err);
    text[n] = '\0';
    if (s == DT_OK && strlen(text) != n)
        s = dt_fail(err, DT_E_DATA, "%s: its header holds a zero byte: get the file again",
                    src->name);
    if (s == DT_OK)
        s = npy_parse_header(src->name, text, h, err);
    free(text);
    return s;
}

enum dt_status
npy_open(struct npy_source *src, struct npy_header *h, struct dt_error *err)
{
    unsigned char b[12] = {0};

    memset(h, 0, sizeof(*h));
    src->offset = 0;
    enum dt_status s = read_exactly(src, b, 8, "its first 8 bytes", err);
    if (s == DT_OK)
        s = check_magic(src, b, err);
    uint32_t length = b[6] == 1 ? 2 : 4;
    if (s == DT_OK)
        s = read_exactly(src, b + 8, length, "its header", err);
    if (s != DT_OK)
        return s;
    uint32_t n =
        (uint32_t)b[8] | (uint32_t)b[9] << 8 | (uint32_t)b[10] << 16 | (uint32_t)b[11] << 24;
    if (n > NPY_MAX_HEADER)
        return dt_fail(err, DT_E_DATA, "%s: its header claims %u bytes, more than %u: get it again",
                       src->name, n, NPY_MAX_HEADER);
    h->header_bytes = 8 + length + (uint64_t)n;
    s = read_text(src, h, n, err);
    return s == DT_OK ? check_size(src, h, err) : s;
}

static uint64_t
little(const unsigned char *p, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static double
element(const unsigned char *p, const struct npy_header *h)
{
    uint64_t bits = little(p, h->item_bytes);
    uint32_t low = (uint32_t)bits;
    float f;
    double d;

    switch (h->type) {
    case NPY_F4:
        memcpy(&f, &low, sizeof(f));
        return (double)f;
    case NPY_F8:
        memcpy(&d, &bits, sizeof(d));
        return d;
    case NPY_I4:
        return (double)(int32_t)low;
    case NPY_I8:
        return (double)(int64_t)bits;
    case NPY_U1:
        break;
    }
    return (double)low;
}

static enum dt_status
read_runs(struct npy_source *src, const struct npy_header *h, npy_sink_fn *sink, void *arg,
          unsigned char *raw, double *v, struct dt_error *err)
{
    for (uint64_t first = 0; first < h->elements;) {
        uint64_t left = h->elements - first;
        size_t n = left < RUN_ELEMENTS ? (size_t)left : RUN_ELEMENTS;
        enum dt_status s = read_exactly(src, raw, n * h->item_bytes, "the data", err);
        if (s != DT_OK)
            return s;
        for (size_t i = 0; i < n; i++)
            v[i] = element(raw + i * h->item_bytes, h);
        s = sink(arg, first, v, n, err);
        if (s != DT_OK)
            return s;
        first += n;
    }
    return DT_OK;
}

static enum dt_status
check_end(struct npy_source *src, struct dt_error *err)
{
    unsigned char extra;
    size_t got;
    enum dt_status s = src->read(src->arg, &extra, 1, &got, err);

    if (s == DT_OK && got > 0)
        s = dt_fail(err, DT_E_DATA,
                    "%s: goes on after offset %llu, where its header says it ends: get it again",
                    src->name, (unsigned long long)src->offset);
    return s;
}

enum dt_status
npy_read(struct npy_source *src, const struct npy_header *h, npy_sink_fn *sink, void *arg,
         struct dt_error *err)
{
    unsigned char *raw = malloc((size_t)RUN_ELEMENTS * h->item_bytes);
    double *v = malloc(RUN_ELEMENTS * sizeof(*v));
    enum dt_status s = DT_E_NO_MEMORY;

    if (raw && v)
        s = read_runs(src, h, sink, arg, raw, v, err);
    else
        dt_fail(err, s, "%s: memory is short", src->name);
    if (s == DT_OK)
        s = check_end(src, err);
    free(raw);
    free(v);
    return s;
}
