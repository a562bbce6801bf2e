/*
 * dataset.c - load the files of a data set and make its two sets fit each other.
 *
 * Invariant: a loaded training and test set have the same row shape, scale, kind of labels and number
 * of classes, and every class is below it. Threads: any; nothing is shared.
 */
#include "worker/train/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/block.h"
#include "worker/train/dataset_load.h"

void
dataset_deinit(struct dataset *d)
{
    if (!d)
        return;
    free(d->x);
    free(d->y);
    free(d->t);
    memset(d, 0, sizeof(*d));
}

static enum dt_status
load_csv(struct dataset_loaded *d, const struct dataset_options *o, struct dt_error *err)
{
    enum dt_status s = csv_load(d->files.train.x, o, &d->train, &d->train_info, err);

    if (s != DT_OK || !d->files.test.x[0])
        return s;
    s = csv_load(d->files.test.x, o, &d->test, &d->test_info, err);
    if (s == DT_OK && d->train_info.header && d->test_info.header &&
        d->train_info.header_hash != d->test_info.header_hash)
        s = dt_fail(err, DT_E_DATA, "%s:1: has another header than %s: give both the same columns",
                    d->files.test.x, d->files.train.x);
    return s;
}

static enum dt_status
load_files(struct dataset_loaded *d, const struct dataset_options *o, struct dt_error *err)
{
    const struct dataset_files *f = &d->files;
    enum dt_status s = DT_OK;

    switch (f->form) {
    case DATASET_IDX:
        s = idx_load(f->train.x, f->train.y, &d->train, err);
        return s == DT_OK && f->test.x[0] ? idx_load(f->test.x, f->test.y, &d->test, err) : s;
    case DATASET_CSV:
        return load_csv(d, o, err);
    case DATASET_NPY:
        s = npy_load(f->train.x, f->train.y, o->target, &d->train, err);
        return s == DT_OK && f->test.x[0] ? npy_load(f->test.x, f->test.y, o->target, &d->test, err)
                                          : s;
    case DATASET_NPZ:
        break;
    }
    return npz_load(f->train.x, o->target, &d->train, &d->test, err);
}

/* Classes become numbers. */
static enum dt_status
make_numbers(struct dataset *d, struct dt_error *err)
{
    if (d->t)
        return DT_OK;
    d->t = malloc(d->n_rows * sizeof(*d->t));
    if (!d->t)
        return dt_fail(err, DT_E_NO_MEMORY, "no memory for %llu labels",
                       (unsigned long long)d->n_rows);
    for (uint64_t i = 0; i < d->n_rows; i++)
        d->t[i] = (float)d->y[i];
    free(d->y);
    d->y = NULL;
    d->n_classes = 1;
    return DT_OK;
}

static enum dt_status
join_labels(struct dataset *train, struct dataset *test, struct dt_error *err)
{
    enum dt_status s = DT_OK;

    if (train->t || test->t)
        s = make_numbers(train, err);
    if (s == DT_OK && train->t)
        s = make_numbers(test, err);
    uint32_t most = train->n_classes > test->n_classes ? train->n_classes : test->n_classes;
    train->n_classes = test->n_classes = most;
    return s;
}

/* Same row shape; classes become those of both together. */
static enum dt_status
join_sets(struct dataset_loaded *d, struct dt_error *err)
{
    struct dataset *train = &d->train;
    struct dataset *test = &d->test;
    const char *path = d->files.test.x[0] ? d->files.test.x : d->files.train.x;

    if (test->n_rows == 0)
        return DT_OK;
    if (train->n_dims != test->n_dims ||
        memcmp(train->dims, test->dims, train->n_dims * sizeof(train->dims[0])) != 0)
        return dt_fail(err, DT_E_DATA,
                       "%s: test rows have %u features and another shape than the %u of the "
                       "training set: the files do not belong together",
                       path, test->n_features, train->n_features);
    if (train->scale != test->scale)
        return dt_fail(err, DT_E_DATA,
                       "%s: only one of the two sets has uint8 features: save both alike", path);
    return join_labels(train, test, err);
}

static void
rescale(struct dataset *d, float scale)
{
    float factor = scale / d->scale;

    for (uint64_t i = 0; i < d->n_rows * d->n_features; i++)
        d->x[i] *= factor;
    d->scale = scale;
}

/* A batch gathers its rows from anywhere in them. */
static void
prepare_gathering(const struct dataset *d)
{
    dt_huge_advise(d->x, d->n_rows * d->n_features * sizeof(float));
}

enum dt_status
dataset_load_all(const struct dataset_options *options, const char *path, struct dataset_loaded *d,
                 struct dt_error *err)
{
    static const struct dataset_options defaults = {0};
    const struct dataset_options *o = options ? options : &defaults;

    memset(d, 0, sizeof(*d));
    enum dt_status s = dataset_find(path, o, &d->files, err);
    if (s == DT_OK)
        s = load_files(d, o, err);
    if (s == DT_OK)
        s = join_sets(d, err);
    if (s == DT_OK && o->scale > 0) {
        rescale(&d->train, o->scale);
        if (d->test.n_rows > 0)
            rescale(&d->test, o->scale);
    }
    if (s == DT_OK)
        prepare_gathering(&d->train);
    if (s != DT_OK) {
        dataset_deinit(&d->train);
        dataset_deinit(&d->test);
    }
    return s;
}

enum dt_status
dataset_load_with(const struct dataset_options *options, const char *path, struct dataset *train,
                  struct dataset *test, struct dt_error *err)
{
    struct dataset_loaded d;
    enum dt_status s = dataset_load_all(options, path, &d, err);

    *train = d.train;
    *test = d.test;
    return s;
}

enum dt_status
dataset_load(const char *path, struct dataset *train, struct dataset *test, struct dt_error *err)
{
    return dataset_load_with(NULL, path, train, test, err);
}
