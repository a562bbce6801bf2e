/*
 * dataset_files.c - find the files of a data set: in a directory by their names, a file by its first
 * bytes (its name counts where they do not tell). Threads: any; nothing is shared.
 */
#include "worker/train/dataset_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/train/gzfile.h"

/* out := dir/name or dir/name.gz, whichever is there; else "". */
static void
find_file(char out[DATASET_PATH], const char *dir, const char *name)
{
    static const char *const suffixes[] = {"", ".gz"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        int n = snprintf(out, DATASET_PATH, "%s/%s%s", dir, name, suffixes[i]);
        if (n > 0 && n < DATASET_PATH && access(out, F_OK) == 0)
            return;
    }
    out[0] = '\0';
}

/* MNIST's own names and their usual variant. */
static void
find_idx_file(char out[DATASET_PATH], const char *dir, const char *set, const char *what,
              unsigned dims)
{
    static const char separators[] = "-.";
    char name[64];

    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s-%s%cidx%u-ubyte", set, what, separators[i], dims);
        find_file(out, dir, name);
        if (out[0])
            return;
    }
}

static void
find_idx(const char *dir, struct dataset_files *f)
{
    f->form = DATASET_IDX;
    find_idx_file(f->train.x, dir, "train", "images", 3);
    find_idx_file(f->train.y, dir, "train", "labels", 1);
    find_idx_file(f->test.x, dir, "t10k", "images", 3);
    find_idx_file(f->test.y, dir, "t10k", "labels", 1);
}

static void
find_csv(const char *dir, struct dataset_files *f)
{
    f->form = DATASET_CSV;
    find_file(f->train.x, dir, "train.csv");
    find_file(f->test.x, dir, "test.csv");
}

static void
find_npy(const char *dir, struct dataset_files *f)
{
    f->form = DATASET_NPY;
    find_file(f->train.x, dir, "x_train.npy");
    find_file(f->train.y, dir, "y_train.npy");
    find_file(f->test.x, dir, "x_test.npy");
    find_file(f->test.y, dir, "y_test.npy");
}

struct form {
    void (*find)(const char *dir, struct dataset_files *f);
    bool pairs;
    struct dataset_set train; /* names for messages */
    struct dataset_set test;
};

static const struct form forms[] = {
    {find_idx,
     true,
     {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
     {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}},
    {find_csv, false, {"train.csv", ""}, {"test.csv", ""}},
    {find_npy, true, {"x_train.npy", "y_train.npy"}, {"x_test.npy", "y_test.npy"}},
};
#define N_FORMS (sizeof(forms) / sizeof(forms[0]))

/* Both files of a set, or none; one alone is an error. */
static enum dt_status
check_set(const char *dir, const struct form *form, const struct dataset_set *names,
          const struct dataset_set *s, struct dt_error *err)
{
    if (!form->pairs || (s->x[0] == '\0') == (s->y[0] == '\0'))
        return DT_OK;
    return dt_fail(err, DT_E_NO_INPUT, "%s: %s (or .gz) is missing: put it there", dir,
                   s->x[0] ? names->y : names->x);
}

static enum dt_status
find_in_directory(const char *dir, struct dataset_files *out, struct dt_error *err)
{
    const struct form *found = NULL;

    if (access(dir, R_OK | X_OK) != 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be read: %s", dir, strerror(errno));
    for (size_t i = 0; i < N_FORMS; i++) {
        struct dataset_files f = {0};
        forms[i].find(dir, &f);
        enum dt_status s = check_set(dir, &forms[i], &forms[i].train, &f.train, err);
        if (s == DT_OK)
            s = check_set(dir, &forms[i], &forms[i].test, &f.test, err);
        if (s != DT_OK)
            return s;
        if (!f.train.x[0])
            continue;
        if (found)
            return dt_fail(err, DT_E_DATA,
                           "%s: holds %s and %s: keep one of the two sets in the directory", dir,
                           found->train.x, forms[i].train.x);
        found = &forms[i];
        *out = f;
    }
    if (found)
        return DT_OK;
    return dt_fail(err, DT_E_NO_INPUT,
                   "%s: holds no training set: put train-images-idx3-ubyte and "
                   "train-labels-idx1-ubyte there, or train.csv, or x_train.npy and y_train.npy "
                   "(each plain or .gz)",
                   dir);
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static enum dt_status
form_of_file(const char *path, const unsigned char *first, size_t n, bool packed,
             enum dataset_form *form, struct dt_error *err)
{
    if (n == 0)
        return dt_fail(err, DT_E_DATA, "%s: is empty: give a file with rows", path);
    if (n >= 4 && memcmp(first, "\0\0\x08", 3) == 0)
        return dt_fail(err, DT_E_NO_INPUT,
                       "%s: is one of several IDX files: name the directory that holds them", path);
    if ((n >= 6 && memcmp(first, "\x93NUMPY", 6) == 0) || ends_with(path, ".npy"))
        return dt_fail(err, DT_E_NO_INPUT,
                       "%s: is one array: name the directory that holds x_train.npy and "
                       "y_train.npy, or an .npz file",
                       path);
    *form = DATASET_CSV;
    if ((n >= 2 && memcmp(first, "PK", 2) == 0) || ends_with(path, ".npz"))
        *form = DATASET_NPZ;
    if (*form == DATASET_NPZ && packed)
        return dt_fail(err, DT_E_DATA, "%s: is an .npz inside gzip: unpack it (gunzip) first",
                       path);
    return DT_OK;
}

static enum dt_status
find_as_file(const char *path, struct dataset_files *out, struct dt_error *err)
{
    unsigned char first[8];
    struct gzfile *f;
    size_t got = 0;

    if ((size_t)snprintf(out->train.x, DATASET_PATH, "%s", path) >= DATASET_PATH)
        return dt_fail(err, DT_E_NO_INPUT, "%.100s...: the path is too long", path);
    enum dt_status s = gzfile_open(path, &f, err);
    if (s != DT_OK)
        return s;
    s = gzfile_read(f, first, sizeof(first), &got, err);
    if (s == DT_OK)
        s = form_of_file(path, first, got, gzfile_is_packed(f), &out->form, err);
    gzfile_close(f);
    return s;
}

/* Options of CSV files that have no meaning elsewhere. */
static enum dt_status
apply_options(const char *path, const struct dataset_options *o, struct dataset_files *f,
              struct dt_error *err)
{
    if (f->form != DATASET_CSV && (o->label || o->header != DATASET_HEADER_AUTO || o->test))
        return dt_fail(err, DT_E_USAGE,
                       "%s: is no CSV data: label column, header and test file are said of those "
                       "only",
                       path);
    if (o->test && (size_t)snprintf(f->test.x, DATASET_PATH, "%s", o->test) >= DATASET_PATH)
        return dt_fail(err, DT_E_NO_INPUT, "%.100s...: the path is too long", o->test);
    return DT_OK;
}

enum dt_status
dataset_find(const char *path, const struct dataset_options *options, struct dataset_files *out,
             struct dt_error *err)
{
    struct stat st;

    memset(out, 0, sizeof(*out));
    if (stat(path, &st) != 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    enum dt_status s =
        S_ISDIR(st.st_mode) ? find_in_directory(path, out, err) : find_as_file(path, out, err);
    return s == DT_OK ? apply_options(path, options, out, err) : s;
}
