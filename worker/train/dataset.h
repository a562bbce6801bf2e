/*
 * dataset.h - labelled rows in memory: float32 features; the label is a class, or a number to predict.
 *
 * Readers, one file each; all take plain or gzip files under either name (an .npz is never gzip):
 *   IDX   directory with {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]
 *   CSV   directory with train.csv[.gz] and maybe test.csv[.gz], or one file
 *   NumPy directory with {x,y}_train.npy[.gz] and maybe {x,y}_test.npy[.gz], or one .npz with these members
 * Bytes (IDX, NumPy's uint8) are pixels and divided by 255; other numbers are taken as they are.
 * Everything the file claims is checked against its real size before an allocation.
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include <stdint.h>

#include "proto/base/error.h"

#define DATASET_MAX_DIMS 4
#define DATASET_MAX_CLASSES 65536u

struct dataset {
    uint64_t n_rows;
    uint32_t n_features;
    uint32_t n_classes;              /* largest label + 1; 1 when the labels are numbers */
    float *x;                        /* owned; n_rows x n_features, row-major */
    uint32_t *y;                     /* owned; n_rows classes; NULL when the labels are numbers */
    float *t;                        /* owned; n_rows numbers; NULL when the labels are classes */
    uint32_t n_dims;                 /* of one row, e.g. 2 for an image */
    uint32_t dims[DATASET_MAX_DIMS]; /* e.g. 28, 28 */
    float scale;                     /* features = raw * scale */
};

enum dataset_target {
    DATASET_CLASSES, /* every label must be a whole number in 0..DATASET_MAX_CLASSES-1 */
    DATASET_NUMBERS, /* labels are numbers (IDX labels stay classes; model linear takes them, too) */
    DATASET_EITHER,  /* classes when all labels are, else numbers */
};

enum dataset_header {                      /* is line 1 of a CSV file a header? */
                      DATASET_HEADER_AUTO, /* yes when none of its cells is a number, no when all are */
                      DATASET_HEADER_YES,
                      DATASET_HEADER_NO,
};

struct dataset_options { /* zero-initialised: the defaults */
    const char
        *label; /* CSV: the label's column: a name in the header, else a number from 1 or, from
                          * the end, -1. NULL: the column called "label", else the last one */
    enum dataset_header header; /* CSV */
    enum dataset_target target;
    float scale;      /* > 0: features = raw * scale; 0: as the reader does */
    const char *test; /* CSV: another file, the test set; NULL: none, or the directory's own */
};

/* Load the training and the test set under `path`, a directory or a file. `test` may come back empty (n_rows
 * 0) when there is none. `options` may be NULL. DT_E_NO_INPUT, DT_E_DATA (file, line and column, offset or row,
 * value, what to do), DT_E_NO_MEMORY, DT_E_USAGE (options that do not fit the files). */
enum dt_status dataset_load_with(const struct dataset_options *options, const char *path,
                                 struct dataset *train, struct dataset *test, struct dt_error *err);
enum dt_status dataset_load(const char *path, struct dataset *train, struct dataset *test,
                            struct dt_error *err); /* with the defaults */
/* For `dtworker check`: describe what is there (one text line a file into `out`), or the first error. `options`
 * may be NULL: then the labels may be classes or numbers. */
enum dt_status dataset_check_with(const struct dataset_options *options, const char *path,
                                  char *out, unsigned out_bytes, struct dt_error *err);
enum dt_status dataset_check(const char *path, char *out, unsigned out_bytes, struct dt_error *err);
void dataset_deinit(struct dataset *d);

/* One IDX pair. */
enum dt_status idx_load(const char *images, const char *labels, struct dataset *out,
                        struct dt_error *err);

#endif
