/*
 * dataset_load.h - private to dataset*.c: both sets with what is known of their files.
 */
#ifndef TRAIN_DATASET_LOAD_H
#define TRAIN_DATASET_LOAD_H

#include "worker/train/csv.h"
#include "worker/train/dataset_files.h"
#include "worker/train/npz.h"

struct dataset_loaded {
    struct dataset_files files;
    struct dataset train;
    struct dataset test;
    struct csv_info train_info; /* CSV only */
    struct csv_info test_info;
};

/* On failure both sets are empty. */
enum dt_status dataset_load_all(const struct dataset_options *options, const char *path,
                                struct dataset_loaded *d, struct dt_error *err);

#endif
