/*
 * loop_over.c - a window's exchange, and what follows when it is over: the step, accuracy at epoch ends, the end.
 *
 * Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

const float *const *
loop_shown(const struct loop *l)
{
    bool is_elastic = algorithm_is_elastic(l->plan.algorithm);

    return (const float *const *)(is_elastic ? l->centre : l->values);
}

enum loop_end
loop_not_finite(struct loop *l)
{
    l->result.status = DTW_NOT_FINITE;
    snprintf(l->result.text, sizeof(l->result.text),
             "the loss or its gradient at step %llu is not finite: try a lower %s (it is %g)",
             (unsigned long long)l->step, l->plan.rank_lr > 0 ? "--lr-per-rank" : "--lr",
             (double)(l->plan.rank_lr > 0 ? l->plan.rank_lr : l->plan.lr));
    return LOOP_NOT_FINITE;
}

/* Without psd there is nothing to wait for. */
static enum phase
exchange_phase(const struct loop *l)
{
    return algorithm_needs_ps(l->plan.algorithm) ? PHASE_WAIT : PHASE_OTHER;
}

static enum dtw_status
exchange_step(struct loop *l, const struct loop_batch *batch)
{
    phases_enter(&l->phases, exchange_phase(l));
    enum dtw_status s = l->exchange->step(l, batch);
    phases_enter(&l->phases, PHASE_OTHER);
    return s;
}

/* An epoch is over: accuracy at the values pulled, the same in every rank. */
static bool
target_reached(struct loop *l)
{
    struct loop_point *p = &l->result.last;
    struct model_score score = {NAN, NAN};

    if (l->plan.test && l->plan.test->n_rows > 0)
        model_evaluate(l->plan.model, l->plan.test, loop_shown(l), &score);
    p->accuracy = score.accuracy;
    return l->plan.target_accuracy > 0 && score.accuracy >= l->plan.target_accuracy;
}

void
loop_account(struct loop *l, uint64_t before)
{
    struct loop_point *p = &l->result.last;

    for (uint64_t s = before; l->plan.rank < l->plan.workers && s < l->step; s++)
        l->rows_due += s < l->plan.steps ? batches_due(l->batches, s) : 0;
    p->step = l->step;
    p->epoch = l->step / l->plan.steps_per_epoch;
    p->epoch_end = p->epoch > before / l->plan.steps_per_epoch;
    p->accuracy = NAN;
    p->seconds = dt_now_seconds() - l->start;
    phases_enter(&l->phases, PHASE_OTHER);
    memcpy(l->result.phases, l->phases.seconds, sizeof(l->result.phases));
}

enum loop_end
loop_end_of(struct loop *l, enum dtw_status s)
{
    if (s == DTW_INTERRUPTED)
        return LOOP_STOPPED;
    if (s == DTW_NOT_FINITE)
        return loop_not_finite(l);
    l->result.status = s;
    snprintf(l->result.text, sizeof(l->result.text), "%s",
             l->err.text[0] ? l->err.text : dtw_strerror(s));
    return LOOP_FAILED;
}

enum loop_end
loop_over(struct loop *l, const struct loop_batch *batch)
{
    struct loop_result *r = &l->result;
    uint64_t before = l->step;

    enum dtw_status s = exchange_step(l, batch);
    if (s != DTW_OK)
        return loop_end_of(l, s);
    loop_account(l, before);
    if (r->last.epoch_end)
        r->target_reached = target_reached(l);
    if (l->plan.point)
        l->plan.point(l->plan.point_arg, &r->last);
    if (r->target_reached && l->exchange->stop_all)
        l->exchange->stop_all(l);
    return r->target_reached || l->stopped_by_all || l->step >= l->plan.steps ? LOOP_DONE
                                                                              : LOOP_RUNNING;
}
