/*
 * dataset.c - find the files of a data set in a directory, load and describe them.
 *
 * Invariant: a loaded training and test set have the same row shape and the same number of classes,
 * and every label is below it. Threads: any; nothing is shared.
 */
#include "worker/train/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/train/gzfile.h"

struct pair { /* full paths; "" when not there */
    char images[1024];
    char labels[1024];
};

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

/* Look for <dir>/<set>-<what> as MNIST's own names and their usual variant, plain before gzip. */
static void
find_file(char *out, size_t out_bytes, const char *dir, const char *set, const char *what,
          unsigned dims)
{
    static const char *const forms[] = {"%s/%s-%s-idx%u-ubyte", "%s/%s-%s-idx%u-ubyte.gz",
                                        "%s/%s-%s.idx%u-ubyte", "%s/%s-%s.idx%u-ubyte.gz"};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        int n = snprintf(out, out_bytes, forms[i], dir, set, what, dims);
        if (n > 0 && (size_t)n < out_bytes && access(out, F_OK) == 0)
            return;
    }
#pragma GCC diagnostic pop
    out[0] = '\0';
}

/* Both files of a set, or none; one alone is an error. */
static enum dt_status
find_pair(const char *dir, const char *set, struct pair *p, struct dt_error *err)
{
    find_file(p->images, sizeof(p->images), dir, set, "images", 3);
    find_file(p->labels, sizeof(p->labels), dir, set, "labels", 1);
    if ((p->images[0] == '\0') == (p->labels[0] == '\0'))
        return DT_OK;
    return dt_fail(err, DT_E_NO_INPUT, "%s: %s-%s-ubyte (or .gz) is missing: put it there", dir,
                   set, p->images[0] ? "labels-idx1" : "images-idx3");
}

static enum dt_status
check_directory(const char *path, struct dt_error *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return dt_fail(
            err, DT_E_NO_INPUT,
            "%s: is not a directory: name the one that holds train-images-idx3-ubyte[.gz] "
            "and its three companions",
            path);
    if (access(path, R_OK | X_OK) != 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    return DT_OK;
}

static enum dt_status
find_sets(const char *path, struct pair *train, struct pair *test, struct dt_error *err)
{
    enum dt_status s = check_directory(path, err);

    if (s == DT_OK)
        s = find_pair(path, "train", train, err);
    if (s == DT_OK)
        s = find_pair(path, "t10k", test, err);
    if (s == DT_OK && !train->images[0])
        s = dt_fail(
            err, DT_E_NO_INPUT,
            "%s: holds no train-images-idx3-ubyte and train-labels-idx1-ubyte (plain or .gz): "
            "name a directory with MNIST-style files",
            path);
    return s;
}

/* Same row shape; classes become those of both together. */
static enum dt_status
join_sets(struct dataset *train, struct dataset *test, const struct pair *files,
          struct dt_error *err)
{
    if (test->n_rows == 0)
        return DT_OK;
    if (train->n_dims != test->n_dims ||
        memcmp(train->dims, test->dims, train->n_dims * sizeof(train->dims[0])) != 0)
        return dt_fail(
            err, DT_E_DATA,
            "%s: rows have %u features and another shape than the %u of the training set: "
            "the files do not belong together",
            files->images, test->n_features, train->n_features);
    uint32_t most = train->n_classes > test->n_classes ? train->n_classes : test->n_classes;
    train->n_classes = test->n_classes = most;
    return DT_OK;
}

static enum dt_status
load_sets(const struct pair *train_files, const struct pair *test_files, struct dataset *train,
          struct dataset *test, struct dt_error *err)
{
    enum dt_status s = idx_load(train_files->images, train_files->labels, train, err);

    memset(test, 0, sizeof(*test));
    if (s == DT_OK && test_files->images[0])
        s = idx_load(test_files->images, test_files->labels, test, err);
    if (s == DT_OK)
        s = join_sets(train, test, test_files, err);
    if (s != DT_OK) {
        dataset_deinit(train);
        dataset_deinit(test);
    }
    return s;
}

enum dt_status
dataset_load(const char *path, struct dataset *train, struct dataset *test, struct dt_error *err)
{
    struct pair train_files;
    struct pair test_files;

    memset(train, 0, sizeof(*train));
    memset(test, 0, sizeof(*test));
    enum dt_status s = find_sets(path, &train_files, &test_files, err);
    return s == DT_OK ? load_sets(&train_files, &test_files, train, test, err) : s;
}

/* "28x28" */
static void
shape_text(const struct dataset *d, char *out, size_t out_bytes)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < d->n_dims && at < out_bytes; i++)
        at += (size_t)snprintf(out + at, out_bytes - at, "%s%u", i ? "x" : "", d->dims[i]);
}

static const char *
form_of(const char *path)
{
    struct gzfile *f;

    if (gzfile_open(path, &f, NULL) != DT_OK)
        return "unreadable";
    bool packed = gzfile_is_packed(f);
    gzfile_close(f);
    return packed ? "gzip" : "plain";
}

static uint64_t
rows_of_smallest_class(const struct dataset *d, uint64_t *most)
{
    uint64_t counts[256] = {0};
    uint64_t least = UINT64_MAX;

    *most = 0;
    for (uint64_t i = 0; i < d->n_rows; i++)
        counts[d->y[i] & 0xff]++;
    for (uint32_t c = 0; c < d->n_classes && c < 256; c++) {
        least = counts[c] < least ? counts[c] : least;
        *most = counts[c] > *most ? counts[c] : *most;
    }
    return least;
}

/* The two lines of a pair behind the text in `out`. */
static void
describe(const struct pair *p, const struct dataset *d, char *out, size_t out_bytes)
{
    size_t at = strlen(out);
    char shape[64];
    uint64_t most;
    uint64_t least = rows_of_smallest_class(d, &most);

    shape_text(d, shape, sizeof(shape));
    snprintf(out + at, out_bytes - at,
             "%s: %s IDX, %llu rows of %s pixels (%u features)\n"
             "%s: %s IDX, %llu labels of %u classes, %llu to %llu rows a class\n",
             p->images, form_of(p->images), (unsigned long long)d->n_rows, shape, d->n_features,
             p->labels, form_of(p->labels), (unsigned long long)d->n_rows, d->n_classes,
             (unsigned long long)least, (unsigned long long)most);
}

enum dt_status
dataset_check(const char *path, char *out, unsigned out_bytes, struct dt_error *err)
{
    struct pair train_files;
    struct pair test_files;
    struct dataset train;
    struct dataset test;

    if (out_bytes > 0)
        out[0] = '\0';
    enum dt_status s = find_sets(path, &train_files, &test_files, err);
    if (s == DT_OK)
        s = load_sets(&train_files, &test_files, &train, &test, err);
    if (s != DT_OK)
        return s;
    if (out_bytes > 0)
        describe(&train_files, &train, out, out_bytes);
    if (out_bytes > 0 && test.n_rows > 0)
        describe(&test_files, &test, out, out_bytes);
    dataset_deinit(&train);
    dataset_deinit(&test);
    return DT_OK;
}
