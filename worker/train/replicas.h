/*
 * replicas.h - in-graph replication: K threads compute gradients of one copy of the values, each of a batch of
 * its own; together they are one gradient.
 *
 * Replica j of rank r reads what rank r*K + j of M*K workers would (order.h). The mean is weighted by rows and
 * summed in the order of replicas, so the result does not depend on which thread was faster: it is bit for bit
 * what psd makes of K workers in a deterministic job (accumulator.h). A model without
 * data counts one row a replica. Thread rule: one thread.
 */
#ifndef TRAIN_REPLICAS_H
#define TRAIN_REPLICAS_H

#include "worker/train/model.h"
#include "worker/train/order.h"

#define REPLICAS_MAX 64

struct replicas_plan {           /* what is pointed to is borrowed for the life of the replicas */
    unsigned n;                  /* K, 1..REPLICAS_MAX */
    struct model *model;         /* replica 0 computes with it, the others with twins */
    const struct dataset *train; /* NULL: a model without data */
    struct order order;          /* its workers are M*K */
    uint32_t rank;               /* of the worker: r */
    float *const *gradients;     /* where the mean goes; replica 0 computes there, too */
};

struct replicas_sum { /* of all replicas in a step */
    uint64_t n_rows;
    unsigned n_batches; /* replicas that had rows */
    double loss;        /* mean over the rows; NAN without one */
};

struct replicas; /* opaque */

/* DT_E_NO_MEMORY, DT_E_INTERNAL (no thread), or model_create's. */
enum dt_status replicas_create(const struct replicas_plan *plan, struct replicas **out,
                               struct dt_error *err);
void replicas_destroy(struct replicas *r); /* NULL-safe; its threads end */
/* Whose batches come next: another `rank` than that of the plan. */
void replicas_set_rank(struct replicas *r, uint32_t rank);
/* The batches of `step` at `values`; the gradients are to be looked at only where there are rows and the loss
 * is finite. */
void replicas_compute(struct replicas *r, uint64_t step, const float *const *values,
                      struct replicas_sum *out);
/* Rows that a step holds for all of them. */
uint64_t replicas_due(const struct replicas *r, uint64_t step);

#endif
