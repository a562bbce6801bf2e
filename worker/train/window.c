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

/* Of what is neither delta nor elastic, but for a window of one batch. */
static bool
has_sums(const struct window *w, uint32_t length)
{
    return length > 1 && w->algorithm->exchange != EXCHANGE_DELTA &&
           w->algorithm->exchange != EXCHANGE_ELASTIC;
}

static bool
allocate(struct window *w, uint32_t length)
{
    for (uint32_t i = 0; i < w->n_variables; i++) {
        if (w->algorithm->local_optimizer && !allocate_slots(w, i))
            return false;
        if (w->algorithm->exchange == EXCHANGE_DELTA && !(w->starts[i] = dtw_alloc(w->elements[i])))
            return false;
        if (has_sums(w, length) && !(w->sums[i] = dtw_alloc(w->elements[i])))
            return false;
    }
    return true;
}

static enum dt_status
make_rule(struct optimizer *o, const char *rule, float lr, const struct train_extras *e,
          bool scheduled, bool is_bias, struct dt_error *err)
{
    struct optimizer_param params[TRAIN_MAX_PARAMS + 1] = {{"lr", lr}};
    unsigned n = e ? train_extras_params(e, scheduled, is_bias, params + 1) : 0;

    return optimizer_init(o, rule, params, n + 1, err);
}

static enum dt_status
make_rules(struct window *w, const struct window_rates *rates, struct dt_error *err)
{
    const struct algorithm *a = w->algorithm;
    bool alone = train_extras_are_local(a);
    enum dt_status s;

    if (!a->local_optimizer)
        return DT_OK;
    s = make_rule(&w->local, a->local_optimizer, rates->local, rates->extras, alone, false, err);
    if (s == DT_OK)
        s = make_rule(&w->local_bias, a->local_optimizer, rates->local, rates->extras, alone, true,
                      err);
    if (s == DT_OK && !alone && rates->extras && rates->extras->n_schedule > 0)
        s = make_rule(&w->server, a->server_optimizer, rates->server, rates->extras, true, true,
                      err);
    return s;
}

enum dt_status
window_init(struct window *w, const struct algorithm *algorithm, const struct model *model,
            uint32_t length, const struct window_rates *rates, struct dt_error *err)
{
    enum dt_status s = DT_OK;

    memset(w, 0, sizeof(*w));
    w->algorithm = algorithm;
    w->scale = 1;
    w->n_variables = model_n_variables(model);
    for (uint32_t i = 0; i < w->n_variables; i++) {
        w->elements[i] = model_variable(model, i)->elements;
        w->is_bias[i] = model_variable(model, i)->is_bias;
    }
    s = make_rules(w, rates, err);
    if (s == DT_OK && algorithm->lookahead != LOOKAHEAD_NONE)
        s = lookahead_init(&w->ahead, model, rates->local, rates->momentum,
                           algorithm->lookahead == LOOKAHEAD_REVERSED, err);
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
        dtw_free(w->starts[i], w->elements[i]);
    }
    lookahead_deinit(&w->ahead);
    memset(w, 0, sizeof(*w));
}

void
window_open(struct window *w, float *const *values)
{
    for (uint32_t i = 0; i < w->n_variables; i++) {
        if (w->starts[i])
            memcpy(w->starts[i], values[i], w->elements[i] * sizeof(float));
    }
}

bool
window_begins_by_variable(const struct window *w)
{
    return w->algorithm->lookahead == LOOKAHEAD_NONE && !w->starts[0];
}

const float *const *
window_point(struct window *w, float *const *values)
{
    if (w->algorithm->lookahead == LOOKAHEAD_NONE)
        return (const float *const *)values;
    return lookahead_point(&w->ahead, values);
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

/* The local rule of variable i at its rate of now. */
static struct optimizer
local_rule(const struct window *w, uint32_t i)
{
    struct optimizer o = w->is_bias[i] ? w->local_bias : w->local;

    if (w->server.rule)
        optimizer_set_rate(&o, optimizer_rate(&o, 0) * optimizer_rate(&w->server, w->version) /
                                   w->server.params[0]);
    return o;
}

void
window_add_variable(struct window *w, uint32_t i, float *values, const float *gradient)
{
    struct optimizer o;

    add_to_sum(w, i, gradient);
    if (w->algorithm->lookahead != LOOKAHEAD_NONE)
        lookahead_add(&w->ahead, i, values, gradient);
    if (!w->algorithm->local_optimizer)
        return;
    o = local_rule(w, i);
    optimizer_apply(&o, values, values, w->slots[i], gradient, w->elements[i], w->n_updates - 1);
}

void
window_add(struct window *w, float *const *values, float *const *gradients)
{
    window_next_batch(w);
    for (uint32_t i = 0; i < w->n_variables; i++)
        window_add_variable(w, i, values[i], gradients[i]);
}

/* The sum or the mean over the batches. A window of one batch has it in `gradient` already. The sum of what was
 * changed is what changed from start to end. */
static void
reduce(const struct window *w, uint32_t i, const float *values, float *gradient)
{
    if (!w->sums[i] && !w->starts[i])
        return;
    if (w->starts[i])
        kernel_sgd(gradient, values, w->starts[i], 1, w->elements[i]);
    else
        memcpy(gradient, w->sums[i], w->elements[i] * sizeof(float));
    if (w->algorithm->reduction == REDUCTION_MEAN)
        kernel_divide(gradient, (float)w->n_batches, w->elements[i]);
}

void
window_close_variable(struct window *w, uint32_t i, const float *values, float *gradient)
{
    reduce(w, i, values, gradient);
    if (w->scale != 1)
        kernel_scale(gradient, gradient, w->scale, w->elements[i]);
}

void
window_end(struct window *w)
{
    w->n_batches = 0;
}

void
window_close(struct window *w, float *const *values, float *const *gradients)
{
    for (uint32_t i = 0; w->n_batches > 0 && i < w->n_variables; i++)
        window_close_variable(w, i, values[i], gradients[i]);
    window_end(w);
}
