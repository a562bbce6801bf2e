/*
 * npz.h - private to dataset*.c: NumPy arrays as a data set: x_train, y_train (and x_test, y_test).
 *
 * x: rows first, then 1 to 4 dimensions of a row; uint8 are pixels and divided by 255. y: as many labels,
 * [rows] or [rows, 1].
 */
#ifndef TRAIN_NPZ_H
#define TRAIN_NPZ_H

#include <stdbool.h>

#include "worker/train/dataset.h"

/* Both sets of an archive; `test` stays empty where there is none. */
enum dt_status npz_load(const char *path, enum dataset_target target, struct dataset *train,
                        struct dataset *test, struct dt_error *err);
/* One set out of two files, plain or gzip. */
enum dt_status npy_load(const char *x, const char *y, enum dataset_target target,
                        struct dataset *out, struct dt_error *err);

#endif
