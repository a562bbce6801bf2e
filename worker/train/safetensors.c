/*
 * safetensors.c - what a model file holds: adding, finding, freeing; and writing it atomically.
 * Reading stands in safetensors_load.c.
 *
 * Invariant: a file under its final name is whole; a temporary one never survives a failure (only
 * kill -9 leaves it: .dtworker-*.tmp). Threads: any; an object belongs to one at a time.
 */
#include "worker/train/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/random.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data are written as they stand in memory");

enum dt_status
model_file_add_meta(struct model_file *mf, struct dt_error *err, const char *key, const char *fmt,
                    ...)
{
    if (mf->n_meta == MODEL_FILE_MAX_META)
        return dt_fail(err, DT_E_INTERNAL, "model file: more than %d metadata entries",
                       MODEL_FILE_MAX_META);
    struct model_file_meta *m = &mf->meta[mf->n_meta];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(m->value, sizeof(m->value), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(m->value) || strlen(key) >= sizeof(m->key))
        return dt_fail(err, DT_E_INTERNAL, "model file: metadata '%s' is too long", key);
    snprintf(m->key, sizeof(m->key), "%s", key);
    mf->n_meta++;
    return DT_OK;
}

enum dt_status
model_file_add_tensor(struct model_file *mf, const char *name, uint32_t n_dims,
                      const uint64_t *shape, const float *data, struct dt_error *err)
{
    if (mf->n_tensors == MODEL_MAX_VARIABLES || n_dims > 4)
        return dt_fail(err, DT_E_INTERNAL, "model file: more than %d tensors or 4 dimensions",
                       MODEL_MAX_VARIABLES);
    struct model_file_tensor *t = &mf->tensors[mf->n_tensors];
    if (strlen(name) >= sizeof(t->name))
        return dt_fail(err, DT_E_INTERNAL, "model file: tensor name '%s' is too long", name);
    memset(t, 0, sizeof(*t));
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->n_dims = n_dims;
    t->elements = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        t->shape[i] = shape[i];
        t->elements *= shape[i];
    }
    t->data = data;
    mf->n_tensors++;
    return DT_OK;
}

/* "28,28" */
static void
input_text(const struct dataset *d, char *out, size_t out_bytes)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; d && i < d->n_dims && at < out_bytes; i++)
        at += (size_t)snprintf(out + at, out_bytes - at, "%s%u", i ? "," : "", d->dims[i]);
}

/* A float as text that reads back as the same float, '.' in every locale. */
static void
float_text(float v, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%.9g", (double)v);
    for (char *p = out; *p; p++) {
        if (*p == ',')
            *p = '.';
    }
}

enum dt_status
model_file_describe(struct model_file *mf, const struct model *m, const struct dataset *data,
                    const float *const *values, const char *job, uint64_t step,
                    struct dt_error *err)
{
    char input[64];
    char scale[32];

    input_text(data, input, sizeof(input));
    float_text(data ? data->scale : 1.0f, scale, sizeof(scale));
    enum dt_status s = model_file_add_meta(mf, err, "format", "%s", MODEL_FILE_FORMAT);
    if (s == DT_OK)
        s = model_file_add_meta(mf, err, "model", "%s", model_spec(m));
    if (s == DT_OK)
        s = model_file_add_meta(mf, err, "input", "%s", input);
    if (s == DT_OK)
        s = model_file_add_meta(mf, err, "classes", "%u", data ? data->n_classes : 0);
    if (s == DT_OK)
        s = model_file_add_meta(mf, err, "scale", "%s", scale);
    if (s == DT_OK)
        s = model_file_add_meta(mf, err, "job", "%s", job ? job : "");
    if (s == DT_OK)
        s = model_file_add_meta(mf, err, "step", "%llu", (unsigned long long)step);
    for (uint32_t i = 0; s == DT_OK && i < model_n_variables(m); i++) {
        const struct model_variable *v = model_variable(m, i);
        s = model_file_add_tensor(mf, v->name, v->n_dims, v->shape, values[i], err);
    }
    return s;
}

void
model_file_deinit(struct model_file *mf)
{
    if (!mf)
        return;
    free(mf->storage);
    memset(mf, 0, sizeof(*mf));
}

const char *
model_file_meta(const struct model_file *mf, const char *key)
{
    for (uint32_t i = 0; i < mf->n_meta; i++) {
        if (strcmp(mf->meta[i].key, key) == 0)
            return mf->meta[i].value;
    }
    return NULL;
}

const struct model_file_tensor *
model_file_find(const struct model_file *mf, const char *name)
{
    for (uint32_t i = 0; i < mf->n_tensors; i++) {
        if (strcmp(mf->tensors[i].name, name) == 0)
            return &mf->tensors[i];
    }
    return NULL;
}

static json_t *
tensor_json(const struct model_file_tensor *t, uint64_t begin)
{
    json_t *shape = json_array();
    uint64_t end = begin + t->elements * sizeof(float);

    for (uint32_t i = 0; i < t->n_dims; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* The JSON header, padded with spaces to a multiple of 8 bytes (caller frees; NULL: no memory, or a text
 * that is not UTF-8). */
static char *
header_text(const struct model_file *mf)
{
    json_t *root = json_object();
    json_t *meta = json_object();
    uint64_t begin = 0;
    int bad = json_object_set_new(root, "__metadata__", meta);

    for (uint32_t i = 0; i < mf->n_meta; i++)
        bad |= json_object_set_new(meta, mf->meta[i].key, json_string(mf->meta[i].value));
    for (uint32_t i = 0; i < mf->n_tensors; i++) {
        const struct model_file_tensor *t = &mf->tensors[i];
        bad |= json_object_set_new(root, t->name, tensor_json(t, begin));
        begin += t->elements * sizeof(float);
    }
    char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (!text)
        return NULL;
    size_t len = strlen(text);
    size_t padded = (len + 7) / 8 * 8;
    char *grown = realloc(text, padded + 1);
    if (!grown) {
        free(text);
        return NULL;
    }
    memset(grown + len, ' ', padded - len);
    grown[padded] = '\0';
    return grown;
}

static bool
write_all(int fd, const void *data, uint64_t n)
{
    const char *p = data;

    while (n > 0) {
        ssize_t w = write(fd, p, n < (1u << 30) ? (size_t)n : 1u << 30);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        p += w;
        n -= (uint64_t)w;
    }
    return true;
}

static bool
write_content(int fd, const char *header, const struct model_file *mf)
{
    uint64_t len = strlen(header);
    bool ok = write_all(fd, &len, sizeof(len)) && write_all(fd, header, len);

    for (uint32_t i = 0; ok && i < mf->n_tensors; i++)
        ok = write_all(fd, mf->tensors[i].data, mf->tensors[i].elements * sizeof(float));
    return ok;
}

/* Directory of `path` into dir, a new temporary file in it into temp; returns its descriptor. */
static enum dt_status
open_temporary(const char *path, char *dir, char *temp, int *fd, struct dt_error *err)
{
    char copy[PATH_MAX];

    if (snprintf(copy, sizeof(copy), "%s", path) >= PATH_MAX - 64)
        return dt_fail(err, DT_E_CANT_CREATE, "%.100s...: the path is too long", path);
    snprintf(dir, PATH_MAX, "%s", dirname(copy));
    snprintf(temp, PATH_MAX + 64, "%s/.dtworker-%016llx.tmp", dir,
             (unsigned long long)dt_random_u64());
    *fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return dt_fail(err, DT_E_CANT_CREATE, "%s: cannot be created: %s", path, strerror(errno));
    return DT_OK;
}

/* Best effort: the file itself is durable; some file systems cannot sync a directory. */
static void
sync_directory(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

/* Content and fsync; closes fd in any case. */
static enum dt_status
fill_temporary(int fd, const char *path, const char *header, const struct model_file *mf,
               struct dt_error *err)
{
    bool ok = write_content(fd, header, mf) && fsync(fd) == 0;
    int why = errno;

    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    return ok ? DT_OK : dt_fail(err, DT_E_IO, "%s: cannot be written: %s", path, strerror(why));
}

/* The file is renamed into its place: that would replace a device (/dev/null) or a FIFO for good. */
static enum dt_status
check_target(const char *path, struct dt_error *err)
{
    size_t len = strlen(path);
    struct stat st;

    if (len == 0 || path[len - 1] == '/')
        return dt_fail(err, DT_E_CANT_CREATE, "'%s' is not a file name", path);
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return DT_OK;
    return dt_fail(err, DT_E_CANT_CREATE, "%s: is %s: name a file", path,
                   S_ISDIR(st.st_mode) ? "a directory" : "a device, FIFO or socket");
}

enum dt_status
model_file_save(const char *path, const struct model_file *mf, struct dt_error *err)
{
    char dir[PATH_MAX];
    char temp[PATH_MAX + 64];
    int fd = -1;
    char *header = header_text(mf);

    if (!header)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: its header cannot be made", path);
    enum dt_status s = check_target(path, err);
    if (s == DT_OK)
        s = open_temporary(path, dir, temp, &fd, err);
    if (s == DT_OK) {
        s = fill_temporary(fd, path, header, mf, err);
        if (s == DT_OK && rename(temp, path) != 0)
            s = dt_fail(err, DT_E_CANT_CREATE, "%s: cannot be created: %s", path, strerror(errno));
        if (s == DT_OK)
            sync_directory(dir);
        else
            unlink(temp);
    }
    free(header);
    return s;
}

enum dt_status
model_file_probe(const char *path, struct dt_error *err)
{
    char dir[PATH_MAX];
    char temp[PATH_MAX + 64];
    int fd = -1;
    enum dt_status s = check_target(path, err);

    if (s == DT_OK)
        s = open_temporary(path, dir, temp, &fd, err);
    if (s == DT_OK) {
        close(fd);
        unlink(temp);
    }
    return s;
}
