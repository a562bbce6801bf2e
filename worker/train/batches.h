/*
 * batches.h - what a worker computes at one set of values: its batch, or with --aggregate N above M its several ones
 * (order_share), each by its replicas. Together they are one gradient.
 *
 * Their mean is by rows, or by batches where psd counts batches (--reduce count, sum); it is summed in order. One
 * thread.
 */
#ifndef TRAIN_BATCHES_H
#define TRAIN_BATCHES_H

#include "worker/train/replicas.h"

struct batches_plan {
    struct replicas_plan replicas; /* its order and rank are those of parts */
    struct order_share share;
    bool by_batches;
};

struct batches; /* opaque */

/* As replicas_create. */
enum dt_status batches_create(const struct batches_plan *plan, struct batches **out,
                              struct dt_error *err);
void batches_destroy(struct batches *b); /* NULL-safe */
/* As replicas_compute and replicas_due. */
void batches_compute(struct batches *b, uint64_t step, const float *const *values,
                     struct replicas_sum *out);
uint64_t batches_due(struct batches *b, uint64_t step);

#endif
