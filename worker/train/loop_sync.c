/*
 * loop_sync.c - synchronous rounds over psd: the step is that of the values pulled.
 *
 * Invariant: after an error `values` still hold a whole step. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

/* Rounds of a synchronous training: the last one may have fewer batches than T. */
static uint64_t
n_rounds(const struct loop *l)
{
    return (l->plan.steps + l->plan.window - 1) / l->plan.window;
}

/* The last round's window may be shorter. */
static uint64_t
step_of_round(const struct loop *l, uint64_t round)
{
    uint64_t step = round * l->plan.window;

    return step < l->plan.steps ? step : l->plan.steps;
}

uint64_t
exchange_sync_step(const struct loop *l)
{
    return step_of_round(l, l->plan.link.ops->worker_step(l->plan.link.self));
}

/* Pull the values of round `first` or later. Past the end nothing is waited for: this worker leaves. */
static enum dtw_status
pull(struct loop *l, uint64_t first)
{
    const struct link *k = &l->plan.link;

    enum dtw_status s =
        k->ops->pull(k->self, l->next, first < n_rounds(l) ? first : 0, NULL, &l->err);
    if (s != DTW_OK)
        return s;
    exchange_take_next(l);
    uint64_t round = l->plan.link.ops->worker_step(l->plan.link.self);
    l->step = step_of_round(l, round > first ? round : first);
    return DTW_OK;
}

enum dtw_status
exchange_sync_rejoin(struct loop *l)
{
    const struct link *k = &l->plan.link;
    enum dtw_status s;
    uint64_t first = 0;

    do {
        l->result.lives_lost++;
        s = k->ops->join(k->self, &first, &l->err);
        if (s == DTW_OK)
            s = pull(l, first);
    } while (s == DTW_LOST);
    return s;
}

static enum dtw_status
sync_begin(struct loop *l)
{
    const struct link *k = &l->plan.link;
    uint64_t first = 0;

    enum dtw_status s = exchange_declare(l);
    if (s == DTW_OK)
        s = k->ops->init(k->self, exchange_fill, l, &first, &l->err);
    if (s == DTW_OK)
        s = pull(l, first);
    if (s == DTW_LOST)
        s = exchange_sync_rejoin(l);
    l->result.first_step = l->step;
    return s;
}

static enum dtw_status
sync_step(struct loop *l, const struct loop_batch *batch)
{
    struct dtw_result r = {0};

    enum dtw_status s = exchange_push_pull(l, batch, &r);
    if (s == DTW_LOST)
        return exchange_sync_rejoin(l);
    if (s != DTW_OK)
        return s;
    exchange_count(l, batch, &r);
    exchange_take_next(l);
    l->step = exchange_sync_step(l);
    return DTW_OK;
}

const struct loop_exchange loop_exchange_sync = {sync_begin, sync_step, NULL, NULL, NULL};
