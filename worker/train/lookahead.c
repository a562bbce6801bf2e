/*
 * lookahead.c - momentum with the gradient at a point ahead. All arithmetic is float32, in the order of lookahead.h.
 * The loop's thread.
 */
#include "worker/train/lookahead.h"

#include <string.h>

#include "psd/optim/kernels.h"
#include "worker/lib/dtworker.h"

enum dt_status
lookahead_init(struct lookahead *a, const struct model *model, float lr, float mu, bool is_reversed,
               struct dt_error *err)
{
    memset(a, 0, sizeof(*a));
    a->lr = lr;
    a->mu = mu;
    a->is_reversed = is_reversed;
    a->n_variables = model_n_variables(model);
    for (uint32_t i = 0; i < a->n_variables; i++) {
        a->elements[i] = model_variable(model, i)->elements;
        a->velocity[i] = dtw_alloc(a->elements[i]);
        a->point[i] = dtw_alloc(a->elements[i]);
        if (!a->velocity[i] || !a->point[i])
            return dt_fail(err, DT_E_NO_MEMORY, "training loop: no memory for momentum");
    }
    return DT_OK;
}

void
lookahead_deinit(struct lookahead *a)
{
    for (uint32_t i = 0; i < a->n_variables; i++) {
        dtw_free(a->velocity[i], a->elements[i]);
        dtw_free(a->point[i], a->elements[i]);
    }
    memset(a, 0, sizeof(*a));
}

const float *const *
lookahead_point(struct lookahead *a, float *const *values)
{
    for (uint32_t i = 0; i < a->n_variables; i++) {
        memcpy(a->point[i], values[i], a->elements[i] * sizeof(float));
        kernel_axpy(a->point[i], a->velocity[i], a->mu, a->elements[i]);
    }
    return (const float *const *)a->point;
}

void
lookahead_add(struct lookahead *a, uint32_t i, float *values, const float *gradient)
{
    uint64_t n = a->elements[i];
    float *v = a->velocity[i];

    kernel_scale(v, v, a->mu, n);
    kernel_axpy(v, gradient, a->is_reversed ? a->lr * a->lr : -a->lr, n);
    kernel_axpy(values, v, a->is_reversed ? -1.0f : 1.0f, n);
}
