/*
 * column.c - see column.h. Labels are kept as numbers until all are there; only then is it known
 * whether they are classes. Threads: any; nothing is shared.
 */
#include "worker/train/column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_VALUES 1024u

bool
floats_reserve(struct floats *f, uint64_t more)
{
    uint64_t cap = f->cap ? f->cap : FIRST_VALUES;

    if (more <= f->cap - f->n)
        return true;
    while (cap - f->n < more) {
        if (cap > UINT64_MAX / 2 / sizeof(float))
            return false;
        cap *= 2;
    }
    float *v = realloc(f->v, cap * sizeof(float));
    if (!v)
        return false;
    f->v = v;
    f->cap = cap;
    return true;
}

void
floats_deinit(struct floats *f)
{
    free(f->v);
    memset(f, 0, sizeof(*f));
}

const char *
label_fault(double v)
{
    if (!isfinite(v))
        return "is not finite";
    if (v < 0)
        return "is negative";
    if (v != floor(v))
        return "is not a whole number";
    return v >= DATASET_MAX_CLASSES ? "is above 65535" : NULL;
}

bool
labels_add(struct labels *l, double v)
{
    if (!floats_reserve(&l->values, 1))
        return false;
    l->values.v[l->values.n++] = (float)v;
    if (label_fault(v))
        l->other = true;
    else if ((uint32_t)v > l->largest)
        l->largest = (uint32_t)v;
    return true;
}

bool
labels_finish(struct labels *l, struct dataset *out)
{
    if (l->target == DATASET_NUMBERS || l->other) {
        out->t = l->values.v;
        out->n_classes = 1;
        memset(&l->values, 0, sizeof(l->values));
        return true;
    }
    out->y = malloc((size_t)l->values.n * sizeof(*out->y));
    for (uint64_t i = 0; out->y && i < l->values.n; i++)
        out->y[i] = (uint32_t)l->values.v[i];
    out->n_classes = l->largest + 1;
    return out->y != NULL;
}

void
labels_deinit(struct labels *l)
{
    floats_deinit(&l->values);
}
