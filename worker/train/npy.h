/*
 * npy.h - private to npz.c: one array in NumPy's format (.npy 1.0 and 2.0), read in order.
 *
 * Little-endian float32, float64, int32, int64 and uint8 in C order. Objects (pickles), structures,
 * other types, Fortran order and other byte orders are refused; what the header claims must be exactly
 * the size of the data.
 */
#ifndef TRAIN_NPY_H
#define TRAIN_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

#define NPY_MAX_DIMS 5
#define NPY_MAX_HEADER (64u << 10)
#define NPY_SIZE_UNKNOWN UINT64_MAX

/* Up to `want` bytes; *got < want only at the end. */
typedef enum dt_status npy_read_fn(void *arg, void *buf, size_t want, size_t *got,
                                   struct dt_error *err);

struct npy_source {   /* where the bytes come from; all borrowed */
    const char *name; /* for messages: "FILE" or "FILE: MEMBER" */
    uint64_t bytes;   /* size, or NPY_SIZE_UNKNOWN (gzip) */
    npy_read_fn *read;
    void *arg;
    uint64_t offset; /* bytes read so far */
};

enum npy_type { NPY_F4, NPY_F8, NPY_I4, NPY_I8, NPY_U1 };

struct npy_header {
    enum npy_type type;
    uint32_t item_bytes;
    uint32_t n_dims; /* 0: a scalar */
    uint64_t dims[NPY_MAX_DIMS];
    uint64_t elements;
    uint64_t header_bytes; /* offset of the first element */
};

/* The text of a header: "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }". Sets type, item_bytes,
 * n_dims and dims. DT_E_DATA, naming `name`. */
enum dt_status npy_parse_header(const char *name, const char *text, struct npy_header *h,
                                struct dt_error *err);
/* Read and check the header; the source then stands at the first element. */
enum dt_status npy_open(struct npy_source *src, struct npy_header *h, struct dt_error *err);

/* Called with v[0..n) = elements first.. in their order. */
typedef enum dt_status npy_sink_fn(void *arg, uint64_t first, const double *v, size_t n,
                                   struct dt_error *err);
/* All elements, then the end of the source. */
enum dt_status npy_read(struct npy_source *src, const struct npy_header *h, npy_sink_fn *sink,
                        void *arg, struct dt_error *err);

#endif
