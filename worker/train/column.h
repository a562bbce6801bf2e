/*
 * column.h - private to the readers: numbers and labels that arrive one after the other.
 *
 * Memory grows with what arrives, not with what a file claims.
 */
#ifndef TRAIN_COLUMN_H
#define TRAIN_COLUMN_H

#include <stdbool.h>

#include "worker/train/dataset.h"

struct floats { /* zero-initialise */
    float *v;   /* owned */
    uint64_t n;
    uint64_t cap;
};

/* Room for `more` values behind v[n]; false: memory is short. */
bool floats_reserve(struct floats *f, uint64_t more);
void floats_deinit(struct floats *f);

struct labels { /* zero-initialise but for `target` */
    enum dataset_target target;
    struct floats values;
    bool other;       /* one of them is no class */
    uint32_t largest; /* class */
};

/* NULL when `v` is a class, else what is wrong with it. */
const char *label_fault(double v);
/* Add one; false: memory is short. The caller has asked label_fault where classes are a must. */
bool labels_add(struct labels *l, double v);
/* Hand the labels over to `out` as classes or numbers (sets y or t, and n_classes). */
bool labels_finish(struct labels *l, struct dataset *out);
void labels_deinit(struct labels *l);

#endif
