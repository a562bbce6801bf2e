/*
 * loop_async.c - pushes that are applied at their arrival: the step is this worker's own count of batches; values
 * are what psd has at the time; in ssp what psd lets a worker of that clock have: its clock is its windows done.
 *
 * Invariant: after an error `values` still hold a whole pull. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

enum dtw_status
exchange_async_pull(struct loop *l)
{
    const struct link *k = &l->plan.link;

    enum dtw_status s = k->ops->pull(k->self, l->next, 0, NULL, &l->err);
    if (s == DTW_OK)
        exchange_take_next(l);
    return s;
}

/* ssp: a joiner begins where the slowest is. */
static void
start_at(struct loop *l, uint64_t clock)
{
    uint64_t n = (l->plan.steps + l->plan.window - 1) / l->plan.window;

    if (l->plan.algorithm->consistency == CONSISTENCY_SSP)
        l->step = clock < n ? clock * l->plan.window : l->plan.steps;
}

enum dtw_status
exchange_async_rejoin(struct loop *l)
{
    const struct link *k = &l->plan.link;
    uint64_t first = 0;
    enum dtw_status s;

    do {
        l->result.lives_lost++;
        s = k->ops->join(k->self, &first, &l->err);
        if (s == DTW_OK)
            start_at(l, first);
        if (s == DTW_OK)
            s = exchange_async_pull(l);
    } while (s == DTW_LOST);
    return s;
}

static enum dtw_status
async_begin(struct loop *l)
{
    const struct link *k = &l->plan.link;
    uint64_t first = 0;

    enum dtw_status s = exchange_declare(l);
    if (s == DTW_OK)
        s = k->ops->init(k->self, exchange_fill, l, &first, &l->err);
    if (s == DTW_OK)
        start_at(l, first);
    if (s == DTW_OK && l->plan.wait_for_step > 0)
        s = k->ops->wait_step(k->self, l->plan.wait_for_step, &l->err);
    if (s == DTW_OK)
        s = exchange_async_pull(l);
    if (s == DTW_LOST)
        s = exchange_async_rejoin(l);
    l->result.first_step = l->step;
    return s;
}

bool
exchange_async_stopped(const struct loop *l)
{
    return l->plan.link.ops->is_stopped(l->plan.link.self);
}

/* The window is over, whatever became of its gradient. */
static enum dtw_status
async_step(struct loop *l, const struct loop_batch *batch)
{
    struct dtw_result r = {0};
    bool rejoined = false;

    enum dtw_status s = exchange_push_pull(l, batch, &r);
    if (s == DTW_OK) {
        exchange_count(l, batch, &r);
        if (r.accumulated > 0)
            staleness_add(&l->result.staleness, r.staleness);
        exchange_take_next(l);
    } else if (s == DTW_LOST) {
        s = exchange_async_rejoin(l);
        rejoined = true;
    }
    if (s != DTW_OK)
        return s;
    if (!rejoined ||
        l->plan.algorithm->consistency != CONSISTENCY_SSP) /* ssp: start_at said where */
        l->step += batch->n_steps;
    l->stopped_by_all = exchange_async_stopped(l);
    return DTW_OK;
}

static void
async_stop_all(struct loop *l)
{
    l->plan.link.ops->stop_all(l->plan.link.self);
}

bool
exchange_async_waited(struct loop *l)
{
    const struct link *k = &l->plan.link;

    return l->plan.final_values && k->ops->wait_step(k->self, UINT64_MAX, NULL) == DTW_OK;
}

/* Take what the others left. What fails here leaves the values of this worker's own end. */
static void
async_finish(struct loop *l)
{
    if (exchange_async_waited(l))
        exchange_async_pull(l);
}

const struct loop_exchange loop_exchange_async = {async_begin, async_step, async_stop_all,
                                                  async_finish, NULL};
