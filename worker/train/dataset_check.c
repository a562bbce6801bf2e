/*
 * dataset_check.c - describe the files of a data set, a line each. Threads: any; nothing is shared.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/plural.h"
#include "worker/train/dataset_load.h"
#include "worker/train/gzfile.h"

struct text {
    char *out;
    size_t bytes;
};

static void __attribute__((format(printf, 2, 3))) add(const struct text *t, const char *fmt, ...)
{
    size_t at = strlen(t->out);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(t->out + at, t->bytes - at, fmt, ap);
    va_end(ap);
}

static const char *
packing(const char *path)
{
    struct gzfile *f;

    if (gzfile_open(path, &f, NULL) != DT_OK)
        return "unreadable";
    bool packed = gzfile_is_packed(f);
    gzfile_close(f);
    return packed ? "gzip" : "plain";
}

/* "5 rows of 28x28 pixels (784 features)" */
static void
add_rows(const struct text *t, const struct dataset *d, const char *what)
{
    add(t, "%llu row%s of ", (unsigned long long)d->n_rows, dt_plural(d->n_rows));
    for (uint32_t i = 0; i < d->n_dims; i++)
        add(t, "%s%u", i ? "x" : "", d->dims[i]);
    add(t, " %s (%u feature%s)", what, d->n_features, dt_plural(d->n_features));
}

static void
add_numbers(const struct text *t, const struct dataset *d)
{
    float least = d->t[0];
    float most = d->t[0];

    for (uint64_t i = 1; i < d->n_rows; i++) {
        least = d->t[i] < least ? d->t[i] : least;
        most = d->t[i] > most ? d->t[i] : most;
    }
    add(t, "%llu number%s from %g to %g", (unsigned long long)d->n_rows, dt_plural(d->n_rows),
        (double)least, (double)most);
}

/* "5 labels of 3 classes, 1 to 2 rows a class" */
static void
add_labels(const struct text *t, const struct dataset *d)
{
    uint64_t *counts = d->t ? NULL : calloc(d->n_classes, sizeof(*counts));
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    if (d->t)
        add_numbers(t, d);
    for (uint64_t i = 0; counts && i < d->n_rows; i++)
        counts[d->y[i]]++;
    for (uint32_t c = 0; counts && c < d->n_classes; c++) {
        least = counts[c] < least ? counts[c] : least;
        most = counts[c] > most ? counts[c] : most;
    }
    if (counts)
        add(t, "%llu label%s of %u classes, %llu to %llu rows a class",
            (unsigned long long)d->n_rows, dt_plural(d->n_rows), d->n_classes,
            (unsigned long long)least, (unsigned long long)most);
    free(counts);
}

static void
add_pair(const struct text *t, const struct dataset_set *s, const struct dataset *d,
         const char *form, const char *what)
{
    add(t, "%s: %s %s, ", s->x, packing(s->x), form);
    add_rows(t, d, what);
    add(t, "\n%s: %s %s, ", s->y, packing(s->y), form);
    add_labels(t, d);
    add(t, "\n");
}

static void
add_csv(const struct text *t, const struct dataset_set *s, const struct dataset *d,
        const struct csv_info *info)
{
    add(t, "%s: %s CSV with%s header, ", s->x, packing(s->x), info->header ? "" : "out");
    add_rows(t, d, "values");
    add(t, "; label column %u", info->label);
    if (info->header)
        add(t, " '%s'", info->label_name);
    add(t, ": ");
    add_labels(t, d);
    add(t, "\n");
}

static void
add_npz(const struct text *t, const char *path, const char *set, const struct dataset *d)
{
    add(t, "%s: x_%s, ", path, set);
    add_rows(t, d, "values");
    add(t, "; y_%s, ", set);
    add_labels(t, d);
    add(t, "\n");
}

static void
describe(const struct text *t, const struct dataset_loaded *l, bool training)
{
    const struct dataset_set *s = training ? &l->files.train : &l->files.test;
    const struct dataset *d = training ? &l->train : &l->test;

    switch (l->files.form) {
    case DATASET_IDX:
        add_pair(t, s, d, "IDX", "pixels");
        break;
    case DATASET_NPY:
        add_pair(t, s, d, "NumPy array", "values");
        break;
    case DATASET_CSV:
        add_csv(t, s, d, training ? &l->train_info : &l->test_info);
        break;
    case DATASET_NPZ:
        add_npz(t, l->files.train.x, training ? "train" : "test", d);
        break;
    }
}

enum dt_status
dataset_check_with(const struct dataset_options *options, const char *path, char *out,
                   unsigned out_bytes, struct dt_error *err)
{
    static const struct dataset_options either = {.target = DATASET_EITHER};
    const struct text t = {out, out_bytes};
    struct dataset_loaded l;

    if (out_bytes > 0)
        out[0] = '\0';
    enum dt_status s = dataset_load_all(options ? options : &either, path, &l, err);
    if (s != DT_OK)
        return s;
    if (out_bytes > 0)
        describe(&t, &l, true);
    if (out_bytes > 0 && l.test.n_rows > 0)
        describe(&t, &l, false);
    dataset_deinit(&l.train);
    dataset_deinit(&l.test);
    return DT_OK;
}

enum dt_status
dataset_check(const char *path, char *out, unsigned out_bytes, struct dt_error *err)
{
    return dataset_check_with(NULL, path, out, out_bytes, err);
}
