/*
 * batches.c - one gradient of several batches at the same values.
 *
 * Invariant: with one batch nothing is touched that the replicas made. The loop's thread.
 */
#include "worker/train/batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "psd/optim/kernels.h"
#include "worker/lib/dtworker.h"

struct batches {
    struct batches_plan plan;
    struct replicas *replicas;        /* owned */
    float *sums[MODEL_MAX_VARIABLES]; /* owned; NULL where there is one batch */
};

static uint64_t
elements(const struct batches *b, uint32_t i)
{
    return model_variable(b->plan.replicas.model, i)->elements;
}

static uint32_t
n_variables(const struct batches *b)
{
    return model_n_variables(b->plan.replicas.model);
}

enum dt_status
batches_create(const struct batches_plan *plan, struct batches **out, struct dt_error *err)
{
    struct batches *b = calloc(1, sizeof(*b));
    enum dt_status s;

    *out = NULL;
    if (!b)
        return dt_fail(err, DT_E_NO_MEMORY, "training loop: memory is short");
    b->plan = *plan;
    b->plan.replicas.rank = plan->share.first;
    s = replicas_create(&b->plan.replicas, &b->replicas, err);
    for (uint32_t i = 0; s == DT_OK && plan->share.n > 1 && i < n_variables(b); i++) {
        b->sums[i] = dtw_alloc(elements(b, i));
        if (!b->sums[i])
            s = dt_fail(err, DT_E_NO_MEMORY, "training loop: no memory for %u batches a round",
                        plan->share.n);
    }
    if (s != DT_OK) {
        batches_destroy(b);
        return s;
    }
    *out = b;
    return DT_OK;
}

void
batches_destroy(struct batches *b)
{
    if (!b)
        return;
    replicas_destroy(b->replicas);
    for (uint32_t i = 0; i < n_variables(b); i++)
        dtw_free(b->sums[i], elements(b, i));
    free(b);
}

/* sums += factor * gradient; the first one overwrites. */
static void
add(struct batches *b, float factor, bool first)
{
    for (uint32_t i = 0; i < n_variables(b); i++) {
        const float *g = b->plan.replicas.gradients[i];
        if (first)
            kernel_scale(b->sums[i], g, factor, elements(b, i));
        else
            kernel_axpy(b->sums[i], g, factor, elements(b, i));
    }
}

/* The gradient of all: sums / divisor. */
static void
divide(struct batches *b, float divisor)
{
    for (uint32_t i = 0; i < n_variables(b); i++) {
        float *g = b->plan.replicas.gradients[i];
        memcpy(g, b->sums[i], elements(b, i) * sizeof(float));
        kernel_divide(g, divisor, elements(b, i));
    }
}

static void
compute_all(struct batches *b, uint64_t step, const float *const *values, struct replicas_sum *out)
{
    double loss = 0;

    *out = (struct replicas_sum){0, 0, NAN};
    for (uint32_t k = 0; k < b->plan.share.n; k++) {
        struct replicas_sum sum;

        replicas_set_rank(b->replicas, b->plan.share.first + k);
        replicas_compute(b->replicas, step, values, &sum);
        if (sum.n_rows == 0)
            continue;
        add(b, (float)(b->plan.by_batches ? sum.n_batches : sum.n_rows), out->n_rows == 0);
        out->n_rows += sum.n_rows;
        out->n_batches += sum.n_batches;
        loss += (double)sum.n_rows * sum.loss;
    }
    if (out->n_rows == 0)
        return;
    out->loss = loss / (double)out->n_rows;
    divide(b, (float)(b->plan.by_batches ? out->n_batches : out->n_rows));
}

void
batches_compute(struct batches *b, uint64_t step, const float *const *values,
                struct replicas_sum *out)
{
    if (b->plan.share.n > 1)
        compute_all(b, step, values, out);
    else
        replicas_compute(b->replicas, step, values, out);
}

uint64_t
batches_due(struct batches *b, uint64_t step)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < b->plan.share.n; k++) {
        replicas_set_rank(b->replicas, b->plan.share.first + k);
        sum += replicas_due(b->replicas, step);
    }
    return sum;
}
