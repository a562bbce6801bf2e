/*
 * loop_elastic.c - elastic averaging: psd holds a centre, each worker values of its own. An exchange draws both to each
 * other by alpha * (value - centre): psd adds it, the worker takes it off (ALGORITHMS section 3).
 *
 * Invariants: the move is made on both sides or on none. `centre` is the centre as last pulled; who begins, or comes
 * back after its life ended, starts from it. Asynchronous: pull, then push. Synchronous: a round adds the moves of all
 * workers from the same centre, which the answer brings. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

#include <string.h>

#include "psd/optim/kernels.h"

static uint64_t
elements(const struct loop *l, uint32_t i)
{
    return model_variable(l->plan.model, i)->elements;
}

/* What was pulled into `next` is the centre. */
static void
take_centre(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        float *whole = l->next[i];
        l->next[i] = l->centre[i];
        l->centre[i] = whole;
    }
}

/* The values just pulled are the centre, too. */
static void
start_from_centre(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++)
        memcpy(l->centre[i], l->values[i], elements(l, i) * sizeof(float));
}

/* moves = alpha * (values - centre) */
static void
compute_moves(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        kernel_sgd(l->moves[i], l->values[i], l->centre[i], 1, elements(l, i));
        kernel_scale(l->moves[i], l->moves[i], l->plan.alpha, elements(l, i));
    }
}

/* A push was answered: move where psd did. */
static void
move(struct loop *l)
{
    if (l->moved.accumulated + l->moved.duplicate == 0)
        return;
    for (uint32_t i = 0; i < l->n_variables; i++)
        kernel_sgd(l->values[i], l->values[i], l->moves[i], 1, elements(l, i));
}

static enum dtw_status
pull_centre(struct loop *l)
{
    const struct link *k = &l->plan.link;

    enum dtw_status s = k->ops->pull(k->self, l->next, 0, NULL, &l->err);
    if (s == DTW_OK)
        take_centre(l);
    return s;
}

/* Asynchronous. */
static enum dtw_status
meet(struct loop *l, uint64_t n_rows, unsigned n_batches)
{
    const struct link *k = &l->plan.link;

    l->moved = (struct dtw_result){0};
    if (n_batches == 0)
        return DTW_OK;
    enum dtw_status s = pull_centre(l);
    if (s != DTW_OK)
        return s;
    compute_moves(l);
    s = k->ops->push(k->self, (const float *const *)l->moves, n_rows > 0 ? n_rows : 1, n_batches,
                     &l->moved, &l->err);
    if (s == DTW_OK)
        move(l);
    return s;
}

/* A round; a push without rows abstains. The sum over the workers takes each move once: count is 1. */
static enum dtw_status
meet_in_round(struct loop *l, uint64_t n_rows)
{
    const struct link *k = &l->plan.link;
    const float *const *moves = n_rows > 0 ? (const float *const *)l->moves : NULL;

    l->moved = (struct dtw_result){0};
    if (n_rows > 0)
        compute_moves(l);
    enum dtw_status s =
        k->ops->step(k->self, moves, l->next, n_rows, n_rows > 0, &l->moved, &l->err);
    if (s != DTW_OK)
        return s;
    if (n_rows > 0)
        move(l);
    take_centre(l);
    return DTW_OK;
}

static enum dtw_status
elastic_begin(struct loop *l)
{
    enum dtw_status s = loop_exchange_async.begin(l);

    if (s == DTW_OK)
        start_from_centre(l);
    return s;
}

static enum dtw_status
elastic_within(struct loop *l, const struct loop_batch *batch, uint64_t n_steps)
{
    return meet(l, batch->n_rows, (unsigned)n_steps);
}

/* The window is over; ORDER_FIRST meets here, ORDER_WITHIN did. */
static enum dtw_status
elastic_step(struct loop *l, const struct loop_batch *batch)
{
    enum dtw_status s = l->within;

    if (l->plan.algorithm->order != ORDER_WITHIN)
        s = meet(l, batch->n_rows, batch->n_batches);
    if (s == DTW_LOST) {
        s = exchange_async_rejoin(l);
        if (s == DTW_OK)
            start_from_centre(l);
    } else if (s == DTW_OK) {
        exchange_count(l, batch, &l->moved);
        if (l->moved.accumulated > 0)
            staleness_add(&l->result.staleness, l->moved.staleness);
    }
    if (s != DTW_OK)
        return s;
    l->step += batch->n_steps;
    l->stopped_by_all = exchange_async_stopped(l);
    return DTW_OK;
}

static void
elastic_stop_all(struct loop *l)
{
    loop_exchange_async.stop_all(l);
}

/* The own last move is not in the centre as last pulled. What fails here leaves that. */
static void
elastic_finish(struct loop *l)
{
    exchange_async_waited(l);
    pull_centre(l);
}

static enum dtw_status
elastic_sync_begin(struct loop *l)
{
    enum dtw_status s = loop_exchange_sync.begin(l);

    if (s == DTW_OK)
        start_from_centre(l);
    return s;
}

static enum dtw_status
elastic_sync_within(struct loop *l, const struct loop_batch *batch, uint64_t n_steps)
{
    (void)n_steps;
    return meet_in_round(l, batch->n_rows);
}

static enum dtw_status
elastic_sync_step(struct loop *l, const struct loop_batch *batch)
{
    if (l->within == DTW_LOST) {
        enum dtw_status s = exchange_sync_rejoin(l);
        if (s == DTW_OK)
            start_from_centre(l);
        return s;
    }
    if (l->within != DTW_OK)
        return l->within;
    exchange_count(l, batch, &l->moved);
    l->step = exchange_sync_step(l);
    return DTW_OK;
}

const struct loop_exchange loop_exchange_elastic = {elastic_begin, elastic_step, elastic_stop_all,
                                                    elastic_finish, elastic_within};
const struct loop_exchange loop_exchange_elastic_sync = {elastic_sync_begin, elastic_sync_step,
                                                         NULL, NULL, elastic_sync_within};
