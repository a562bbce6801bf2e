/*
 * window.c - local steps and the reduction of a window. The loop's thread.
 */
#include "worker/train/window.h"

#include <stdlib.h>
#include <string.h>

#include "psd/optim/kernels.h"
#include "worker/lib/dtworker.h"

static bool
allocate_slots(struct window *w, uint32_t i)
{
    for (unsigned k = 0; k < optimizer_n_slots(&w->local); k++) {
        uint64_t n = optimizer_slot_elements(&w->local, k, w->elements[i]);
        w->slots[i][k] = dtw_alloc(n);
        if (!w->slots[i][k])
            return false;
        for (uint64_t e = 0; e < n; e++)
            w->slots[i][k][e] = optimizer_slot_start(&w->local, k);
    }
    return true;
}

static bool
allocate(struct window *w, uint32_t length)
{
    for (uint32_t i = 0; i < w->n_variables; i++) {
        if (w->algorithm->local_optimizer && !allocate_slots(w, i))
            return false;
        if (length > 1 && !(w->sums[i] = dtw_alloc(w->elements[i])))
            return false;
    }
    return true;
}

enum dt_status
window_init(struct window *w, const struct algorithm *algorithm, const struct model *model,
            uint32_t length, float lr, struct dt_error *err)
{
    enum dt_status s = DT_OK;

    memset(w, 0, sizeof(*w));
    w->algorithm = algorithm;
    w->scale = 1;
    w->n_variables = model_n_variables(model);
    for (uint32_t i = 0; i < w->n_variables; i++)
        w->elements[i] = model_variable(model, i)->elements;
    if (algorithm->local_optimizer) {
        struct optimizer_param rate = {"lr", lr};
        s = optimizer_init(&w->local, algorithm->local_optimizer, &rate, 1, err);
    }
    if (s == DT_OK && !allocate(w, length))
        s = dt_fail(err, DT_E_NO_MEMORY, "training loop: no memory for a window of %u batches",
                    length);
    return s;
}

void
window_deinit(struct window *w)
{
    for (uint32_t i = 0; i < w->n_variables; i++) {
        for (unsigned k = 0; k < OPTIMIZER_MAX_SLOTS && w->slots[i][k]; k++)
            dtw_free(w->slots[i][k], optimizer_slot_elements(&w->local, k, w->elements[i]));
        dtw_free(w->sums[i], w->elements[i]);
    }
    memset(w, 0, sizeof(*w));
}

static void
add_to_sum(struct window *w, uint32_t i, const float *g)
{
    if (!w->sums[i])
        return;
    if (w->n_batches == 1)
        memcpy(w->sums[i], g, w->elements[i] * sizeof(*g));
    else
        kernel_axpy(w->sums[i], g, 1.0f, w->elements[i]);
}

void
window_next_batch(struct window *w)
{
    w->n_batches++;
    w->n_updates++;
}

void
window_add_variable(struct window *w, uint32_t i, float *values, const float *gradient)
{
    add_to_sum(w, i, gradient);
    if (w->algorithm->local_optimizer)
        optimizer_apply(&w->local, values, values, w->slots[i], gradient, w->elements[i],
                        w->n_updates - 1);
}

void
window_add(struct window *w, float *const *values, float *const *gradients)
{
    window_next_batch(w);
    for (uint32_t i = 0; i < w->n_variables; i++)
        window_add_variable(w, i, values[i], gradients[i]);
}

/* The sum or the mean over the batches. A window of one batch has it in `gradient` already. */
static void
reduce(const struct window *w, uint32_t i, float *gradient)
{
    if (!w->sums[i])
        return;
    memcpy(gradient, w->sums[i], w->elements[i] * sizeof(float));
    if (w->algorithm->reduction == REDUCTION_MEAN)
        kernel_divide(gradient, (float)w->n_batches, w->elements[i]);
}

void
window_close_variable(struct window *w, uint32_t i, float *gradient)
{
    reduce(w, i, gradient);
    if (w->scale != 1)
        kernel_scale(gradient, gradient, w->scale, w->elements[i]);
}

void
window_end(struct window *w)
{
    w->n_batches = 0;
}

void
window_close(struct window *w, float *const *gradients)
{
    for (uint32_t i = 0; w->n_batches > 0 && i < w->n_variables; i++)
        window_close_variable(w, i, gradients[i]);
    window_end(w);
}
