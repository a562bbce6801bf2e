/*
 * loop_async.c - pushes that are applied at their arrival: the step is this worker's own count of batches; values
 * are what psd has at the time.
 *
 * Invariant: after an error `values` still hold a whole pull. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

static enum dtw_status
async_pull(struct loop *l)
{
    struct dtw_handle *h = NULL;

    enum dtw_status s = dtw_pull(l->plan.client, l->next, 0, &h, &l->err);
    if (s == DTW_OK)
        s = dtw_wait(h, -1, NULL, &l->err);
    if (s == DTW_OK)
        exchange_take_next(l);
    return s;
}

static enum dtw_status
async_rejoin(struct loop *l)
{
    enum dtw_status s;

    do {
        l->result.lives_lost++;
        s = dtw_join(l->plan.client, NULL, &l->err);
        if (s == DTW_OK)
            s = async_pull(l);
    } while (s == DTW_LOST);
    return s;
}

static enum dtw_status
async_begin(struct loop *l)
{
    enum dtw_status s = exchange_declare(l);
    if (s == DTW_OK)
        s = dtw_init(l->plan.client, exchange_fill, l, NULL, &l->err);
    if (s == DTW_OK && l->plan.wait_for_step > 0)
        s = dtw_wait_step(l->plan.client, l->plan.wait_for_step, -1, &l->err);
    if (s == DTW_OK)
        s = async_pull(l);
    return s == DTW_LOST ? async_rejoin(l) : s;
}

/* The window is over, whatever became of its gradient. */
static enum dtw_status
async_step(struct loop *l, const struct loop_batch *batch)
{
    uint64_t left = l->plan.steps - l->step;
    struct dtw_result r = {0};

    enum dtw_status s = exchange_push_pull(l, batch, &r);
    if (s == DTW_OK) {
        exchange_count(l, batch, &r);
        if (r.accumulated > 0)
            staleness_add(&l->result.staleness, r.staleness);
        exchange_take_next(l);
    } else if (s == DTW_LOST) {
        s = async_rejoin(l);
    }
    if (s != DTW_OK)
        return s;
    l->step += left < l->plan.window ? left : l->plan.window;
    l->stopped_by_all = dtw_global_step(l->plan.client) >= dtw_stop_step(l->plan.client);
    return DTW_OK;
}

static void
async_stop_all(struct loop *l)
{
    dtw_set_stop_step(l->plan.client, dtw_global_step(l->plan.client), 10000, NULL);
}

/* Wait for the other workers, and take what they left. What fails here leaves the values of this worker's own
 * end. */
static void
async_finish(struct loop *l)
{
    if (dtw_wait_step(l->plan.client, UINT64_MAX, -1, NULL) == DTW_OK)
        async_pull(l);
}

const struct loop_exchange loop_exchange_async = {async_begin, async_step, async_stop_all,
                                                  async_finish};
