/*
 * idx.c - IDX files (yann.lecun.com/exdb/mnist): 00 00 08 <dimensions>, sizes big-endian, then bytes.
 *
 * Invariant: memory grows with the bytes that arrive and never past what the header claims, so neither
 * a lying header nor a small file that unpacks to a large one can take more. Images have 2 to 5
 * dimensions (a row has 1 to 4), labels one. Threads: any; nothing is shared.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/base/block.h"
#include "worker/train/dataset.h"
#include "worker/train/gzfile.h"

#define IDX_MAX_DIMS 5
#define IDX_UBYTE 0x08
#define IDX_MAX_ELEMENTS (UINT64_C(1) << 40)
#define IDX_FIRST_BYTES (UINT64_C(64) << 10)

struct idx_file {
    struct gzfile *f; /* owned */
    uint32_t n_dims;
    uint32_t dims[IDX_MAX_DIMS];
    uint64_t elements;
};

static enum dt_status
cut_short(const struct idx_file *i, uint64_t expected, const char *what, struct dt_error *err)
{
    return dt_fail(
        err, DT_E_DATA,
        "%s: ends at offset %llu%s, expected are %llu bytes (%s): the file was cut, get it again",
        gzfile_path(i->f), (unsigned long long)gzfile_offset(i->f),
        gzfile_is_packed(i->f) ? " (unpacked)" : "", (unsigned long long)expected, what);
}

static enum dt_status
read_u32(struct idx_file *i, uint64_t header_bytes, uint32_t *v, struct dt_error *err)
{
    unsigned char b[4];
    size_t got;
    enum dt_status s = gzfile_read(i->f, b, sizeof(b), &got, err);

    if (s != DT_OK)
        return s;
    if (got < sizeof(b))
        return cut_short(i, header_bytes, "an IDX header", err);
    *v = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return DT_OK;
}

static enum dt_status
check_magic(struct idx_file *i, uint32_t magic, bool labels, struct dt_error *err)
{
    const char *path = gzfile_path(i->f);

    if (magic >> 16 != 0)
        return dt_fail(
            err, DT_E_DATA,
            "%s: starts with %08x, an IDX file with %08x: give an IDX file, plain or gzip", path,
            magic, labels ? 0x801u : 0x803u);
    if ((magic >> 8 & 0xff) != IDX_UBYTE)
        return dt_fail(err, DT_E_DATA,
                       "%s: IDX element type %02x at offset 2, only 08 (unsigned byte) is read: "
                       "convert the file",
                       path, magic >> 8 & 0xff);
    i->n_dims = magic & 0xff;
    if (labels && i->n_dims != 1)
        return dt_fail(err, DT_E_DATA,
                       "%s: magic %08x, labels have 00000801: are images and labels swapped?", path,
                       magic);
    if (!labels && (i->n_dims < 2 || i->n_dims > IDX_MAX_DIMS))
        return dt_fail(err, DT_E_DATA,
                       "%s: magic %08x, images have 00000803 (00000802 to 00000805 are read): %s",
                       path, magic,
                       i->n_dims == 1 ? "are images and labels swapped?" : "convert the file");
    return DT_OK;
}

/* Product of the sizes; what a plain file claims is compared with its size at once. */
static enum dt_status
check_sizes(struct idx_file *i, struct dt_error *err)
{
    const char *path = gzfile_path(i->f);
    uint64_t header = 4 + 4 * (uint64_t)i->n_dims;

    i->elements = 1;
    for (uint32_t d = 0; d < i->n_dims; d++) {
        if (i->dims[d] == 0)
            return dt_fail(err, DT_E_DATA,
                           "%s: size 0 at offset %u: the file holds no rows, give one that does",
                           path, 4 + 4 * d);
        if (i->elements > IDX_MAX_ELEMENTS / i->dims[d])
            return dt_fail(err, DT_E_DATA,
                           "%s: the sizes up to offset %u claim more than 2^40 bytes: the file is "
                           "damaged, get it again",
                           path, 8 + 4 * d);
        i->elements *= i->dims[d];
    }
    unsigned long long claimed = header + i->elements;
    if (gzfile_is_packed(i->f) || gzfile_bytes(i->f) == claimed)
        return DT_OK;
    return dt_fail(
        err, DT_E_DATA,
        "%s: has %llu bytes, its header claims %llu: the file was cut or is not whole, get "
        "it again",
        path, (unsigned long long)gzfile_bytes(i->f), claimed);
}

static enum dt_status
idx_open(struct idx_file *i, const char *path, bool labels, struct dt_error *err)
{
    uint32_t magic = 0;
    enum dt_status s = gzfile_open(path, &i->f, err);

    if (s == DT_OK)
        s = read_u32(i, labels ? 8 : 16, &magic, err);
    if (s == DT_OK)
        s = check_magic(i, magic, labels, err);
    for (uint32_t d = 0; s == DT_OK && d < i->n_dims; d++)
        s = read_u32(i, 4 + 4 * (uint64_t)i->n_dims, &i->dims[d], err);
    return s == DT_OK ? check_sizes(i, err) : s;
}

static enum dt_status
check_end(struct idx_file *i, struct dt_error *err)
{
    unsigned char extra;
    size_t got;
    enum dt_status s = gzfile_read(i->f, &extra, 1, &got, err);

    if (s == DT_OK && got > 0)
        s = dt_fail(err, DT_E_DATA,
                    "%s: goes on after offset %llu, where its header says it ends: get it again",
                    gzfile_path(i->f), (unsigned long long)gzfile_offset(i->f) - 1);
    return s;
}

/* Append what arrives until all elements are there. */
static enum dt_status
fill_elements(struct idx_file *i, unsigned char **raw, struct dt_error *err)
{
    uint64_t cap = 0;
    uint64_t n = 0;

    while (n < i->elements) {
        cap = cap ? cap * 2 : IDX_FIRST_BYTES;
        if (cap > i->elements)
            cap = i->elements;
        unsigned char *p = realloc(*raw, cap);
        if (!p)
            return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for %llu bytes", gzfile_path(i->f),
                           (unsigned long long)cap);
        *raw = p;
        size_t got;
        enum dt_status s = gzfile_read(i->f, p + n, cap - n, &got, err);
        if (s != DT_OK)
            return s;
        n += got;
        if (n < cap)
            return cut_short(i, 4 + 4 * (uint64_t)i->n_dims + i->elements, "as its header says",
                             err);
    }
    return check_end(i, err);
}

/* The elements (caller frees), or NULL and why. */
static unsigned char *
read_elements(struct idx_file *i, enum dt_status *s, struct dt_error *err)
{
    unsigned char *raw = NULL;

    *s = fill_elements(i, &raw, err);
    if (*s == DT_OK)
        return raw;
    free(raw);
    return NULL;
}

/* Room for one 4-byte value an element, or NULL and why. */
static void *
values_for(const struct idx_file *i, enum dt_status *s, struct dt_error *err)
{
    void *p = malloc(i->elements * sizeof(float));

    dt_huge_advise(p, i->elements * sizeof(float)); /* before the pages are there */
    if (!p)
        *s = dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for %llu values", gzfile_path(i->f),
                     (unsigned long long)i->elements);
    return p;
}

static enum dt_status
read_images(struct idx_file *i, struct dataset *out, struct dt_error *err)
{
    enum dt_status s;
    unsigned char *raw = read_elements(i, &s, err);

    if (!raw)
        return s;
    out->x = values_for(i, &s, err);
    out->scale = 1.0f / 255.0f;
    for (uint64_t k = 0; out->x && k < i->elements; k++)
        out->x[k] = (float)raw[k] * out->scale;
    out->n_rows = i->dims[0];
    out->n_features = (uint32_t)(i->elements / i->dims[0]);
    out->n_dims = i->n_dims - 1;
    memcpy(out->dims, i->dims + 1, out->n_dims * sizeof(out->dims[0]));
    free(raw);
    return s;
}

static enum dt_status
read_labels(struct idx_file *i, struct dataset *out, struct dt_error *err)
{
    enum dt_status s;
    unsigned char *raw = read_elements(i, &s, err);

    if (!raw)
        return s;
    out->y = values_for(i, &s, err);
    for (uint64_t k = 0; out->y && k < i->elements; k++) {
        out->y[k] = raw[k];
        if (raw[k] >= out->n_classes)
            out->n_classes = raw[k] + 1u;
    }
    free(raw);
    return s;
}

static enum dt_status
check_pair(const struct idx_file *images, const struct idx_file *labels, struct dt_error *err)
{
    uint64_t features = images->elements / images->dims[0];

    if (features > UINT32_MAX / 2)
        return dt_fail(err, DT_E_DATA, "%s: %llu features a row are too many",
                       gzfile_path(images->f), (unsigned long long)features);
    if (images->dims[0] != labels->dims[0])
        return dt_fail(
            err, DT_E_DATA, "%s: %u images, but %s has %u labels: the files do not belong together",
            gzfile_path(images->f), images->dims[0], gzfile_path(labels->f), labels->dims[0]);
    return DT_OK;
}

enum dt_status
idx_load(const char *images, const char *labels, struct dataset *out, struct dt_error *err)
{
    struct idx_file x = {0};
    struct idx_file y = {0};

    memset(out, 0, sizeof(*out));
    enum dt_status s = idx_open(&x, images, false, err);
    if (s == DT_OK)
        s = idx_open(&y, labels, true, err);
    if (s == DT_OK)
        s = check_pair(&x, &y, err);
    if (s == DT_OK)
        s = read_labels(&y, out, err);
    if (s == DT_OK)
        s = read_images(&x, out, err);
    gzfile_close(x.f);
    gzfile_close(y.f);
    if (s != DT_OK)
        dataset_deinit(out);
    return s;
}
