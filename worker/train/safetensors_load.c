/*
 * safetensors_load.c - read a model file with every claim checked before it is used.
 *
 * Header at most 1 MiB and inside the file, no duplicate keys, dtype F32, shape products in 128 bit,
 * data offsets contiguous and covering. A file from elsewhere may lie; beyond its header it can cost at
 * most its own size in memory. Threads: any; an object belongs to one at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/train/safetensors.h"

#define ADVICE "it is damaged or no model file, save it again"

struct source {
    const char *path; /* borrowed */
    int fd;
    uint64_t size;
    uint64_t data_start;
};

struct extent { /* of one tensor in the data */
    uint64_t begin;
    uint64_t end;
    struct model_file_tensor tensor;
};

static enum dt_status
read_at(const struct source *f, void *out, uint64_t n, uint64_t at, struct dt_error *err)
{
    char *p = out;

    while (n > 0) {
        ssize_t r = pread(f->fd, p, n < (1u << 30) ? (size_t)n : 1u << 30, (off_t)at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return dt_fail(err, DT_E_IO, "%s: read failed at byte %llu: %s", f->path,
                           (unsigned long long)at, strerror(errno));
        if (r == 0)
            return dt_fail(err, DT_E_DATA, "%s: ends at byte %llu: " ADVICE, f->path,
                           (unsigned long long)at);
        p += r;
        at += (uint64_t)r;
        n -= (uint64_t)r;
    }
    return DT_OK;
}

static enum dt_status
open_source(const char *path, struct source *f, struct dt_error *err)
{
    struct stat st;

    f->path = path;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return dt_fail(err, DT_E_NO_INPUT, "%s: is not a regular file: name a model file", path);
    f->size = (uint64_t)st.st_size;
    return DT_OK;
}

/* The header as JSON (caller drops the reference). */
static enum dt_status
read_header(struct source *f, json_t **root, struct dt_error *err)
{
    uint64_t len = 0;
    json_error_t why;

    if (f->size < sizeof(len))
        return dt_fail(err, DT_E_DATA, "%s: has %llu bytes, a model file has at least 8: " ADVICE,
                       f->path, (unsigned long long)f->size);
    enum dt_status s = read_at(f, &len, sizeof(len), 0, err);
    if (s != DT_OK)
        return s;
    if (len > MODEL_FILE_MAX_HEADER || len > f->size - sizeof(len))
        return dt_fail(err, DT_E_DATA, "%s: claims a header of %llu bytes in %llu: " ADVICE,
                       f->path, (unsigned long long)len, (unsigned long long)f->size);
    char *text = malloc(len + 1);
    if (!text)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for its header", f->path);
    s = read_at(f, text, len, sizeof(len), err);
    if (s == DT_OK) {
        *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
        if (!*root)
            s = dt_fail(err, DT_E_DATA, "%s: header, byte %d: %.120s: " ADVICE, f->path,
                        why.position + (int)sizeof(len), why.text);
        else if (!json_is_object(*root))
            s = dt_fail(err, DT_E_DATA, "%s: the header is no JSON object: " ADVICE, f->path);
    }
    free(text);
    f->data_start = sizeof(len) + len;
    return s;
}

static enum dt_status
take_metadata(const struct source *f, json_t *meta, struct model_file *mf, struct dt_error *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(meta))
        return dt_fail(err, DT_E_DATA, "%s: __metadata__ is no object: " ADVICE, f->path);
    if (json_object_size(meta) > MODEL_FILE_MAX_META)
        return dt_fail(err, DT_E_DATA, "%s: more than %d metadata entries: " ADVICE, f->path,
                       MODEL_FILE_MAX_META);
    json_object_foreach(meta, key, value)
    {
        struct model_file_meta *m = &mf->meta[mf->n_meta];
        if (!json_is_string(value))
            return dt_fail(err, DT_E_DATA, "%s: metadata '%.64s' is no string: " ADVICE, f->path,
                           key);
        if (strlen(key) >= sizeof(m->key) || json_string_length(value) >= sizeof(m->value))
            return dt_fail(err, DT_E_DATA, "%s: metadata '%.64s' is too long: " ADVICE, f->path,
                           key);
        snprintf(m->key, sizeof(m->key), "%s", key);
        snprintf(m->value, sizeof(m->value), "%s", json_string_value(value));
        mf->n_meta++;
    }
    return DT_OK;
}

/* An array of integers >= 0 of at most `max` into out; false if it is anything else. */
static bool
take_integers(const json_t *array, uint64_t *out, size_t max, uint32_t *n)
{
    if (!json_is_array(array) || json_array_size(array) > max)
        return false;
    *n = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(array, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return false;
        out[i] = (uint64_t)json_integer_value(v);
    }
    return true;
}

/* Bytes of the tensor; false when they pass what any file can hold. */
static bool
tensor_bytes(struct model_file_tensor *t, uint64_t *bytes)
{
    unsigned __int128 product = 1;

    for (uint32_t i = 0; i < t->n_dims; i++) {
        product *= t->shape[i];
        if (product > (UINT64_C(1) << 60))
            return false;
    }
    t->elements = (uint64_t)product;
    *bytes = t->elements * sizeof(float);
    return true;
}

static enum dt_status
take_tensor(const struct source *f, const char *name, json_t *info, struct extent *e,
            struct dt_error *err)
{
    struct model_file_tensor *t = &e->tensor;
    const char *dtype = json_string_value(json_object_get(info, "dtype"));
    uint64_t offsets[2] = {0};
    uint32_t n_offsets = 0;
    uint64_t bytes = 0;

    if (strlen(name) == 0 || strlen(name) >= sizeof(t->name))
        return dt_fail(err, DT_E_DATA, "%s: tensor name '%.80s' is empty or too long: " ADVICE,
                       f->path, name);
    snprintf(t->name, sizeof(t->name), "%s", name);
    if (json_object_size(info) != 3 || !dtype ||
        !take_integers(json_object_get(info, "shape"), t->shape, 4, &t->n_dims) ||
        !take_integers(json_object_get(info, "data_offsets"), offsets, 2, &n_offsets) ||
        n_offsets != 2)
        return dt_fail(
            err, DT_E_DATA,
            "%s: tensor %s: dtype, shape (4 dimensions at most) and data_offsets are not as "
            "they should be: " ADVICE,
            f->path, name);
    if (strcmp(dtype, "F32") != 0)
        return dt_fail(err, DT_E_DATA, "%s: tensor %s: dtype %.16s, only F32 is read: convert it",
                       f->path, name, dtype);
    if (!tensor_bytes(t, &bytes) || offsets[1] < offsets[0] || offsets[1] - offsets[0] != bytes)
        return dt_fail(err, DT_E_DATA,
                       "%s: tensor %s: offsets %llu to %llu do not fit its shape: " ADVICE, f->path,
                       name, (unsigned long long)offsets[0], (unsigned long long)offsets[1]);
    e->begin = offsets[0];
    e->end = offsets[1];
    return DT_OK;
}

static int
by_place(const void *a, const void *b)
{
    const struct extent *x = a;
    const struct extent *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The tensors fill the data from first to last byte, in order. */
static enum dt_status
check_cover(const struct source *f, struct extent *e, uint32_t n, struct dt_error *err)
{
    uint64_t at = 0;

    qsort(e, n, sizeof(*e), by_place);
    for (uint32_t i = 0; i < n; i++) {
        if (e[i].begin != at)
            return dt_fail(
                err, DT_E_DATA, "%s: tensor %s begins at %llu of the data, expected %llu: " ADVICE,
                f->path, e[i].tensor.name, (unsigned long long)e[i].begin, (unsigned long long)at);
        at = e[i].end;
    }
    if (at != f->size - f->data_start)
        return dt_fail(err, DT_E_DATA,
                       "%s: the tensors need %llu bytes, the file has %llu: " ADVICE, f->path,
                       (unsigned long long)at, (unsigned long long)(f->size - f->data_start));
    return DT_OK;
}

static enum dt_status
take_header(const struct source *f, json_t *root, struct extent *e, struct model_file *mf,
            struct dt_error *err)
{
    const char *key;
    json_t *value;
    enum dt_status s;

    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "__metadata__") == 0) {
            s = take_metadata(f, value, mf, err);
        } else if (mf->n_tensors == MODEL_MAX_VARIABLES) {
            s = dt_fail(err, DT_E_DATA, "%s: more than %d tensors: " ADVICE, f->path,
                        MODEL_MAX_VARIABLES);
        } else {
            s = take_tensor(f, key, value, &e[mf->n_tensors], err);
            mf->n_tensors++;
        }
        if (s != DT_OK)
            return s;
    }
    return check_cover(f, e, mf->n_tensors, err);
}

static enum dt_status
take_data(const struct source *f, const struct extent *e, struct model_file *mf,
          struct dt_error *err)
{
    uint64_t bytes = f->size - f->data_start;

    mf->storage = malloc(bytes ? bytes : 1);
    if (!mf->storage)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for %llu bytes", f->path,
                       (unsigned long long)bytes);
    for (uint32_t i = 0; i < mf->n_tensors; i++) {
        mf->tensors[i] = e[i].tensor;
        mf->tensors[i].data = mf->storage + e[i].begin / sizeof(float);
    }
    return read_at(f, mf->storage, bytes, f->data_start, err);
}

enum dt_status
model_file_load(const char *path, struct model_file *mf, struct dt_error *err)
{
    struct source f = {.fd = -1};
    struct extent extents[MODEL_MAX_VARIABLES] = {0};
    json_t *root = NULL;

    memset(mf, 0, sizeof(*mf));
    enum dt_status s = open_source(path, &f, err);
    if (s == DT_OK)
        s = read_header(&f, &root, err);
    if (s == DT_OK)
        s = take_header(&f, root, extents, mf, err);
    if (s == DT_OK)
        s = take_data(&f, extents, mf, err);
    json_decref(root);
    if (f.fd >= 0)
        close(f.fd);
    if (s != DT_OK)
        model_file_deinit(mf);
    return s;
}
