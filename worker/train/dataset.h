/*
 * dataset.h - labelled rows in memory: float32 features, integer classes.
 *
 * Readers (one file each): IDX plain or gzip (directory with the four MNIST-style files
 * {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]); later CSV, .npy. Pixels are divided by 255.
 * Everything the file claims is checked against its real size before an allocation.
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include <stdint.h>

#include "proto/base/error.h"

struct dataset {
    uint64_t n_rows;
    uint32_t n_features;
    uint32_t n_classes; /* largest label + 1 */
    float *x;           /* owned; n_rows x n_features, row-major */
    uint32_t *y;        /* owned; n_rows */
    uint32_t n_dims;    /* of one row, e.g. 2 for an image */
    uint32_t dims[4];   /* e.g. 28, 28 */
    float scale;        /* features = raw * scale */
};

/* Load the training and the test set under `path` (a directory). `test` may come back empty
 * (n_rows 0) when there is none. DT_E_NO_INPUT, DT_E_DATA (file, offset or row, value, what to do), DT_E_NO_MEMORY. */
enum dt_status dataset_load(const char *path, struct dataset *train, struct dataset *test,
                            struct dt_error *err);
/* For `dtworker check`: describe what is there (one text line a file into `out`), or the first error. */
enum dt_status dataset_check(const char *path, char *out, unsigned out_bytes, struct dt_error *err);
void dataset_deinit(struct dataset *d);

/* One IDX pair. */
enum dt_status idx_load(const char *images, const char *labels, struct dataset *out,
                        struct dt_error *err);

#endif
