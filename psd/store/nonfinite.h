/*
 * nonfinite.h - whether an update has made a slice's values or slots NaN or Inf, and who had pushed.
 *
 * A push is checked, but a finite gradient may be too large for the rule: its square overflows, or the sum with the
 * others. To look at all values after each update would cost a pass over them. So it is done after an update by
 * gradients that are large enough to do such a thing from a sane state (the check of a push has found the largest
 * number already), and besides after updates 1, 2, 4, ..., 128, 256, 512, 768, ...: what is not finite stays so,
 * and is found later.
 *
 * Thread rule: the slice's shard alone.
 */
#ifndef PSD_STORE_NONFINITE_H
#define PSD_STORE_NONFINITE_H

#include <stdbool.h>
#include <stdint.h>

struct slice;
struct job;

/* Squares of smaller ones are far from the largest float32, 3.4e38, with weights and rates. */
#define NONFINITE_LARGE 1e12f
#define NONFINITE_EVERY 256

struct nonfinite { /* of a slice */
    bool found;
    bool told;     /* for the layer above */
    uint8_t slot;  /* found in this one; OPTIMIZER_MAX_SLOTS: in the values */
    uint32_t rank; /* whose gradient is the largest since the last update; once found, it stays */
    float largest; /* its largest magnitude */
    uint64_t step; /* when it was found */
};

/* A gradient was taken. */
void nonfinite_push(struct nonfinite *f, uint32_t rank, float largest);
/* The slice has been updated, for the `version`-th time. Sets job->has_nonfinite when it finds something. */
void nonfinite_update(struct slice *slice, struct job *job, uint64_t version, uint64_t step);

#endif
