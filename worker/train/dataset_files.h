/*
 * dataset_files.h - private to dataset*.c: which files a data set consists of.
 */
#ifndef TRAIN_DATASET_FILES_H
#define TRAIN_DATASET_FILES_H

#include "worker/train/dataset.h"

#define DATASET_PATH 1024

enum dataset_form { DATASET_IDX, DATASET_CSV, DATASET_NPY, DATASET_NPZ };

struct dataset_set { /* full paths; "" when not there */
    char x[DATASET_PATH];
    char y[DATASET_PATH]; /* IDX and NPY only: the labels */
};

struct dataset_files {
    enum dataset_form form;
    struct dataset_set train;
    struct dataset_set test;
};

/* Look what `path`, a directory or a file, holds. DT_E_NO_INPUT, DT_E_DATA, DT_E_USAGE: an option that does not
 * fit the form. */
enum dt_status dataset_find(const char *path, const struct dataset_options *options,
                            struct dataset_files *out, struct dt_error *err);

#endif
