/*
 * overlap.c - an exchange under way while its gradient and the next one are computed. The loop's thread.
 */
#include "worker/train/overlap.h"

#include <math.h>

#include "worker/train/loop_state.h"

/* A variable's gradient is final: into the window, and off it goes. */
static void
send(void *arg, uint32_t variable, double loss)
{
    struct loop *l = arg;
    enum dtw_status s;

    if (!isfinite(loss))
        return; /* the loop sees it as well and gives up */
    window_add_variable(&l->window, variable, l->values[variable], l->gradients[variable]);
    window_close_variable(&l->window, variable, l->values[variable], l->gradients[variable]);
    if (l->overlap.status != DTW_OK)
        return;
    enum phase before = phases_enter(&l->phases, PHASE_WAIT);
    s = dtw_step_gradient(l->overlap.handle, variable, l->gradients[variable], &l->err);
    phases_enter(&l->phases, before);
    if (s == DTW_NOT_FINITE)
        l->overlap.status = s;
}

void
overlap_plan(struct loop *l, const struct loop_batch *batch, uint64_t step, bool is_last)
{
    uint64_t rows = l->plan.overlap && is_last ? batches_due(l->batches, step) : 0;

    l->overlap.weight = rows > 0 ? batch->n_rows + rows : 0;
    l->overlap.count = batch->n_batches + 1;
}

void
overlap_start(struct loop *l)
{
    struct overlap *o = &l->overlap;

    if (o->weight == 0)
        return;
    o->status = DTW_OK;
    enum phase before = phases_enter(&l->phases, PHASE_WAIT);
    enum dtw_status s =
        dtw_step_begin(l->plan.client, l->next, o->weight, o->count, &o->handle, &l->err);
    phases_enter(&l->phases, before);
    if (s != DTW_OK)
        return; /* dtw_step will say the same */
    window_next_batch(&l->window);
    model_on_ready(l->plan.model, send, l);
}

enum dtw_status
overlap_finish(struct loop *l, struct dtw_result *result)
{
    struct dtw_handle *h = l->overlap.handle;

    if (l->overlap.status != DTW_OK) {
        overlap_cancel(l);
        return l->overlap.status;
    }
    l->overlap.handle = NULL;
    return l->plan.link.ops->finish(l->plan.link.self, h, (const float *const *)l->gradients,
                                    l->next, result, &l->err);
}

void
overlap_cancel(struct loop *l)
{
    if (l->overlap.handle)
        dtw_cancel(l->overlap.handle);
    l->overlap.handle = NULL;
    l->overlap.is_coming = false;
}

/* Nothing is between the two: no accuracy, no end, no step without rows, which would wait for no variable. */
static bool
follows_at_once(struct loop *l, uint64_t step)
{
    uint64_t epoch = l->plan.steps_per_epoch;

    return step < l->plan.steps && step / epoch == l->step / epoch &&
           batches_due(l->batches, step) > 0;
}

bool
overlap_leave_open(struct loop *l, const struct loop_batch *batch)
{
    struct overlap *o = &l->overlap;

    if (!o->handle || o->status != DTW_OK || !window_begins_by_variable(&l->window) ||
        !follows_at_once(l, l->step + batch->n_steps))
        return false;
    o->is_coming = true;
    o->batch = *batch;
    o->n_come = 0;
    for (uint32_t i = 0; i < l->n_variables; i++)
        o->point[i] = l->next[i];
    return true;
}

bool
overlap_is_coming(const struct loop *l)
{
    return l->overlap.is_coming;
}

uint64_t
overlap_step(const struct loop *l)
{
    return l->step + (l->overlap.is_coming ? l->overlap.batch.n_steps : 0);
}

const float *const *
overlap_point(struct loop *l)
{
    return l->overlap.is_coming ? l->overlap.point : NULL;
}

bool
overlap_wait(struct loop *l, uint32_t variable)
{
    struct overlap *o = &l->overlap;
    enum phase before = phases_enter(&l->phases, PHASE_WAIT);
    enum dtw_status s = dtw_wait_variable(o->handle, variable, -1, &l->err);

    phases_enter(&l->phases, before);
    return s == DTW_OK && ++o->n_come < l->n_variables;
}

bool
overlap_settle(struct loop *l)
{
    struct loop_batch batch = l->overlap.batch;
    uint64_t step = overlap_step(l), lost = l->result.lives_lost;
    enum phase before = phases_enter(&l->phases, PHASE_OTHER);

    l->overlap.is_coming = false;
    l->result.end = loop_over(l, &batch);
    phases_enter(&l->phases, before);
    l->window.version = l->plan.link.ops->worker_step(l->plan.link.self);
    return l->result.end == LOOP_RUNNING && l->step == step && l->result.lives_lost == lost;
}
