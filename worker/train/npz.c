/*
 * npz.c - see npz.h. Both headers of a pair are read and compared before any data.
 *
 * Invariant: memory grows with the elements that arrive. Threads: any; nothing is shared.
 */
#include "worker/train/npz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/train/column.h"
#include "worker/train/gzfile.h"
#include "worker/train/npy.h"
#include "worker/train/zip.h"

struct pair {
    struct npy_source xs;
    struct npy_source ys;
    struct npy_header xh;
    struct npy_header yh;
    struct floats x;
    struct labels labels;
    uint64_t features;
    float scale;
};

static enum dt_status
add_features(void *arg, uint64_t first, const double *v, size_t n, struct dt_error *err)
{
    struct pair *p = arg;

    if (!floats_reserve(&p->x, n))
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for more rows", p->xs.name);
    for (size_t i = 0; i < n; i++) {
        float f = (float)v[i];
        if (!isfinite(f))
            return dt_fail(err, DT_E_DATA,
                           "%s: row %llu, feature %llu (from 0) holds %g, which is not finite in "
                           "float32: remove the row",
                           p->xs.name, (unsigned long long)((first + i) / p->features),
                           (unsigned long long)((first + i) % p->features), v[i]);
        p->x.v[p->x.n++] = f * p->scale;
    }
    return DT_OK;
}

static enum dt_status
add_labels(void *arg, uint64_t first, const double *v, size_t n, struct dt_error *err)
{
    struct pair *p = arg;

    for (size_t i = 0; i < n; i++) {
        unsigned long long row = first + i;
        const char *fault = isfinite((float)v[i]) ? NULL : "is not finite";
        if (p->labels.target == DATASET_CLASSES)
            fault = label_fault(v[i]);
        if (fault)
            return dt_fail(err, DT_E_DATA,
                           "%s: row %llu (from 0) holds the label %g, which %s: classes are whole "
                           "numbers from 0 (numbers to predict need model linear)",
                           p->ys.name, row, v[i], fault);
        if (!labels_add(&p->labels, v[i]))
            return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for more rows", p->ys.name);
    }
    return DT_OK;
}

static enum dt_status
check_shapes(struct pair *p, struct dt_error *err)
{
    const struct npy_header *x = &p->xh;
    const struct npy_header *y = &p->yh;

    if (x->n_dims < 2)
        return dt_fail(err, DT_E_DATA,
                       "%s: has %u dimensions: the rows come first, then 1 to 4 of a row",
                       p->xs.name, x->n_dims);
    if (y->n_dims < 1 || y->elements != y->dims[0])
        return dt_fail(err, DT_E_DATA,
                       "%s: holds %llu values in %u dimensions: give one label a row, not one-hot",
                       p->ys.name, (unsigned long long)y->elements, y->n_dims);
    if (x->dims[0] != y->dims[0])
        return dt_fail(err, DT_E_DATA,
                       "%s: %llu rows, but %s has %llu: they do not belong together", p->xs.name,
                       (unsigned long long)x->dims[0], p->ys.name, (unsigned long long)y->dims[0]);
    p->features = x->elements / x->dims[0];
    if (p->features > UINT32_MAX / 2)
        return dt_fail(err, DT_E_DATA, "%s: %llu features a row are too many", p->xs.name,
                       (unsigned long long)p->features);
    return DT_OK;
}

static enum dt_status
finish(struct pair *p, struct dataset *out, struct dt_error *err)
{
    out->n_rows = p->xh.dims[0];
    out->n_features = (uint32_t)p->features;
    out->n_dims = p->xh.n_dims - 1;
    for (uint32_t i = 0; i < out->n_dims; i++)
        out->dims[i] = (uint32_t)p->xh.dims[i + 1];
    out->scale = p->scale;
    if (!labels_finish(&p->labels, out))
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", p->ys.name);
    out->x = p->x.v;
    memset(&p->x, 0, sizeof(p->x));
    return DT_OK;
}

/* Sources and target are set. */
static enum dt_status
load_pair(struct pair *p, struct dataset *out, struct dt_error *err)
{
    memset(out, 0, sizeof(*out));
    enum dt_status s = npy_open(&p->xs, &p->xh, err);
    if (s == DT_OK)
        s = npy_open(&p->ys, &p->yh, err);
    if (s == DT_OK)
        s = check_shapes(p, err);
    p->scale = p->xh.type == NPY_U1 ? 1.0f / 255.0f : 1.0f;
    if (s == DT_OK)
        s = npy_read(&p->ys, &p->yh, add_labels, p, err);
    if (s == DT_OK)
        s = npy_read(&p->xs, &p->xh, add_features, p, err);
    if (s == DT_OK)
        s = finish(p, out, err);
    if (s != DT_OK)
        dataset_deinit(out);
    floats_deinit(&p->x);
    labels_deinit(&p->labels);
    return s;
}

static enum dt_status
read_gzfile(void *arg, void *buf, size_t want, size_t *got, struct dt_error *err)
{
    return gzfile_read(arg, buf, want, got, err);
}

static enum dt_status
open_gzfile(const char *path, struct gzfile **f, struct npy_source *src, struct dt_error *err)
{
    enum dt_status s = gzfile_open(path, f, err);

    if (s == DT_OK)
        *src = (struct npy_source){
            .name = gzfile_path(*f),
            .bytes = gzfile_is_packed(*f) ? NPY_SIZE_UNKNOWN : gzfile_bytes(*f),
            .read = read_gzfile,
            .arg = *f,
        };
    return s;
}

enum dt_status
npy_load(const char *x, const char *y, enum dataset_target target, struct dataset *out,
         struct dt_error *err)
{
    struct pair p = {.labels = {.target = target}};
    struct gzfile *xf = NULL;
    struct gzfile *yf = NULL;

    memset(out, 0, sizeof(*out));
    enum dt_status s = open_gzfile(x, &xf, &p.xs, err);
    if (s == DT_OK)
        s = open_gzfile(y, &yf, &p.ys, err);
    if (s == DT_OK)
        s = load_pair(&p, out, err);
    gzfile_close(xf);
    gzfile_close(yf);
    return s;
}

static enum dt_status
read_member(void *arg, void *buf, size_t want, size_t *got, struct dt_error *err)
{
    return zip_member_read(arg, buf, want, got, err);
}

static enum dt_status
open_member(struct zip *z, const char *name, struct zip_member **m, struct npy_source *src,
            struct dt_error *err)
{
    enum dt_status s = zip_member_open(z, name, m, err);

    if (s == DT_OK)
        *src = (struct npy_source){
            .name = zip_member_name(*m),
            .bytes = zip_member_bytes(*m),
            .read = read_member,
            .arg = *m,
        };
    return s;
}

static enum dt_status
load_members(struct zip *z, const char *x, const char *y, enum dataset_target target,
             struct dataset *out, struct dt_error *err)
{
    struct pair p = {.labels = {.target = target}};
    struct zip_member *xm = NULL;
    struct zip_member *ym = NULL;

    enum dt_status s = open_member(z, x, &xm, &p.xs, err);
    if (s == DT_OK)
        s = open_member(z, y, &ym, &p.ys, err);
    if (s == DT_OK)
        s = load_pair(&p, out, err);
    zip_member_close(xm);
    zip_member_close(ym);
    return s;
}

enum dt_status
npz_load(const char *path, enum dataset_target target, struct dataset *train, struct dataset *test,
         struct dt_error *err)
{
    struct zip *z;

    memset(train, 0, sizeof(*train));
    memset(test, 0, sizeof(*test));
    enum dt_status s = zip_open(path, &z, err);
    if (s != DT_OK)
        return s;
    if (!zip_has(z, "x_train.npy") || !zip_has(z, "y_train.npy"))
        s = dt_fail(err, DT_E_DATA,
                    "%s: holds no array %s: save it by numpy.savez(file, x_train=..., y_train=..., "
                    "x_test=..., y_test=...)",
                    path, zip_has(z, "x_train.npy") ? "y_train" : "x_train");
    if (s == DT_OK)
        s = load_members(z, "x_train.npy", "y_train.npy", target, train, err);
    if (s == DT_OK && (zip_has(z, "x_test.npy") || zip_has(z, "y_test.npy")))
        s = load_members(z, "x_test.npy", "y_test.npy", target, test, err);
    zip_close(z);
    if (s != DT_OK) {
        dataset_deinit(train);
        dataset_deinit(test);
    }
    return s;
}
