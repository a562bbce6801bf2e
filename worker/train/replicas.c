/*
 * replicas.c - a gradient from several threads.
 *
 * Invariants: a replica writes nothing but its own struct, model and gradients. An earlier replica never has
 * fewer rows than a later one (order.h): when the first has none, no one has.
 * Threads: the caller's (replica 0, and the sum) and those of the pool.
 */
#include "worker/train/replicas.h"

#include <math.h>
#include <stdlib.h>

#include "psd/optim/kernels.h"
#include "worker/lib/dtworker.h"
#include "worker/train/pool.h"

struct replica {
    struct model *model;                   /* owned but for replica 0 */
    float *gradients[MODEL_MAX_VARIABLES]; /* likewise */
    uint64_t *rows;                        /* owned; room for a batch */
    uint32_t n_rows;                       /* of the step at hand */
    double loss;
};

struct replicas {
    struct replicas_plan plan;
    struct pool *pool; /* owned */
    uint64_t step;     /* that is being computed, */
    const float *const *values;
    struct replica list[]; /* plan.n */
};

static uint64_t
elements(const struct replicas *r, uint32_t i)
{
    return model_variable(r->plan.model, i)->elements;
}

static enum dt_status
prepare(struct replicas *r, unsigned k, struct dt_error *err)
{
    struct replica *replica = &r->list[k];
    enum dt_status s = DT_OK;
    uint32_t n = model_n_variables(r->plan.model);
    bool room = (replica->rows = calloc(r->plan.order.batch + 1u, sizeof(*replica->rows)));

    if (k == 0) {
        replica->model = r->plan.model;
        for (uint32_t i = 0; i < n; i++)
            replica->gradients[i] = r->plan.gradients[i];
    } else {
        s = model_twin(r->plan.model, &replica->model, err);
        for (uint32_t i = 0; i < n; i++)
            room = (replica->gradients[i] = dtw_alloc(elements(r, i))) && room;
    }
    if (s == DT_OK && !room)
        s = dt_fail(err, DT_E_NO_MEMORY, "replica %u: no memory for its gradients", k);
    return s;
}

enum dt_status
replicas_create(const struct replicas_plan *plan, struct replicas **out, struct dt_error *err)
{
    struct replicas *r = calloc(1, sizeof(*r) + plan->n * sizeof(r->list[0]));
    enum dt_status s = DT_OK;

    *out = NULL;
    if (!r)
        return dt_fail(err, DT_E_NO_MEMORY, "replicas: memory is short");
    r->plan = *plan;
    for (unsigned k = 0; s == DT_OK && k < plan->n; k++)
        s = prepare(r, k, err);
    if (s == DT_OK)
        s = pool_create(plan->n, &r->pool, err);
    if (s != DT_OK) {
        replicas_destroy(r);
        return s;
    }
    *out = r;
    return DT_OK;
}

void
replicas_destroy(struct replicas *r)
{
    if (!r)
        return;
    pool_destroy(r->pool);
    for (unsigned k = 0; k < r->plan.n; k++) {
        free(r->list[k].rows);
        for (uint32_t i = 0; k > 0 && i < model_n_variables(r->plan.model); i++)
            dtw_free(r->list[k].gradients[i], elements(r, i));
        if (k > 0)
            model_destroy(r->list[k].model);
    }
    free(r);
}

static uint32_t
rank_of(const struct replicas *r, unsigned k)
{
    return r->plan.rank * r->plan.n + k;
}

static void
compute(void *arg, unsigned k)
{
    struct replicas *r = arg;
    struct replica *replica = &r->list[k];

    replica->n_rows = 1;
    if (model_needs_data(r->plan.model))
        replica->n_rows = order_rows(&r->plan.order, r->step, rank_of(r, k), replica->rows);
    if (replica->n_rows > 0)
        replica->loss = model_gradient(replica->model, r->plan.train, replica->rows,
                                       replica->n_rows, r->values, replica->gradients);
}

static void
sum_up(const struct replicas *r, struct replicas_sum *sum)
{
    double loss = 0;

    *sum = (struct replicas_sum){0, 0, NAN};
    for (unsigned k = 0; k < r->plan.n; k++) {
        const struct replica *replica = &r->list[k];
        if (replica->n_rows == 0)
            continue;
        sum->n_rows += replica->n_rows;
        sum->n_batches++;
        loss += replica->n_rows * replica->loss;
    }
    if (sum->n_batches == 1)
        sum->loss = r->list[0].loss;
    else if (sum->n_batches > 1)
        sum->loss = loss / (double)sum->n_rows;
}

/* Replica 0's gradient of variable `i` becomes the mean of all: sum(rows * g) / sum(rows), as on psd. */
static void
average(const struct replicas *r, uint32_t i, uint64_t n_rows)
{
    float *mean = r->list[0].gradients[i];

    kernel_scale(mean, mean, (float)r->list[0].n_rows, elements(r, i));
    for (unsigned k = 1; k < r->plan.n; k++) {
        if (r->list[k].n_rows > 0)
            kernel_axpy(mean, r->list[k].gradients[i], (float)r->list[k].n_rows, elements(r, i));
    }
    if (n_rows > 1)
        kernel_divide(mean, (float)n_rows, elements(r, i));
}

void
replicas_set_rank(struct replicas *r, uint32_t rank)
{
    r->plan.rank = rank;
}

void
replicas_compute(struct replicas *r, uint64_t step, const float *const *values,
                 struct replicas_sum *out)
{
    r->step = step;
    r->values = values;
    pool_run(r->pool, compute, r);
    sum_up(r, out);
    for (uint32_t i = 0;
         r->plan.n > 1 && out->n_batches > 0 && i < model_n_variables(r->plan.model); i++)
        average(r, i, out->n_rows);
}

uint64_t
replicas_due(const struct replicas *r, uint64_t step)
{
    uint64_t sum = 0;

    for (unsigned k = 0; k < r->plan.n; k++)
        sum +=
            model_needs_data(r->plan.model) ? order_count(&r->plan.order, step, rank_of(r, k)) : 1;
    return sum;
}
