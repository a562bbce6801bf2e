/*
 * loop_exchange.c - how values come and gradients go: alone, or in synchronous rounds over psd.
 *
 * Invariant: after an error `values` still hold a whole step. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

#include <string.h>

static enum dtw_status
local_begin(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++)
        model_init(l->plan.model, i, l->values[i]);
    l->have_values = true;
    return DTW_OK;
}

/* A push was answered: what became of it. */
static void
count_push(struct loop *l, const struct loop_batch *batch, const struct dtw_result *r)
{
    struct loop_result *out = &l->result;
    bool taken = batch->n_rows == 0 || r->accumulated + r->duplicate > 0;

    out->pushes++;
    out->accepted += taken;
    out->last.samples += batch->n_rows;
    if (taken && l->plan.rank < l->plan.workers)
        l->rows_taken += batch->n_rows;
    if (batch->n_rows == 0)
        return;
    out->last.partial += r->partial;
    out->last.stale += !taken && r->stale > 0;
    out->refused += !taken && r->stale == 0;
}

static enum dtw_status
local_step(struct loop *l, const struct loop_batch *batch)
{
    struct dtw_result applied = {.accumulated = 1};

    count_push(l, batch, &applied);
    l->step += batch->n_steps;
    return DTW_OK;
}

const struct loop_exchange loop_exchange_local = {local_begin, local_step, NULL, NULL};

/* `next` is whole: it takes the place of `values`. */
static void
take_next(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        float *whole = l->next[i];
        l->next[i] = l->values[i];
        l->values[i] = whole;
    }
    l->have_values = true;
}

static enum dtw_status
declare_all(struct loop *l)
{
    enum dtw_status s = DTW_OK;

    for (uint32_t i = 0; s == DTW_OK && i < l->n_variables; i++) {
        const struct model_variable *v = model_variable(l->plan.model, i);
        struct dtw_variable d = {
            .name = v->name,
            .n_dims = v->n_dims,
            .shape = v->shape,
            .optimizer = l->plan.algorithm->server_optimizer,
            .lr = l->plan.lr,
            .init = v->init,
            .seed = l->plan.seed,
        };
        s = dtw_declare(l->plan.client, &d, NULL, &l->err);
    }
    return s;
}

static void
fill(void *arg, unsigned index, float *values, uint64_t n)
{
    const struct loop *l = arg;

    (void)n;
    model_init(l->plan.model, index, values);
}

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

/* Pull the values of round `first` or later. Past the end nothing is waited for: this worker leaves. */
static enum dtw_status
pull(struct loop *l, uint64_t first)
{
    struct dtw_handle *h = NULL;
    struct dtw_result r = {0};

    enum dtw_status s =
        dtw_pull(l->plan.client, l->next, first < n_rounds(l) ? first : 0, &h, &l->err);
    if (s == DTW_OK)
        s = dtw_wait(h, -1, &r, &l->err);
    if (s != DTW_OK)
        return s;
    take_next(l);
    uint64_t round = dtw_worker_step(l->plan.client);
    l->step = step_of_round(l, round > first ? round : first);
    return DTW_OK;
}

/* This worker's life ended: become a member again and go on at the step that JOIN names. */
static enum dtw_status
rejoin(struct loop *l)
{
    enum dtw_status s;
    uint64_t first = 0;

    do {
        l->result.lives_lost++;
        s = dtw_join(l->plan.client, &first, &l->err);
        if (s == DTW_OK)
            s = pull(l, first);
    } while (s == DTW_LOST);
    return s;
}

static enum dtw_status
sync_begin(struct loop *l)
{
    uint64_t first = 0;

    enum dtw_status s = declare_all(l);
    if (s == DTW_OK)
        s = dtw_init(l->plan.client, fill, l, &first, &l->err);
    if (s == DTW_OK)
        s = pull(l, first);
    if (s == DTW_LOST)
        s = rejoin(l);
    l->result.first_step = l->step;
    return s;
}

/* Push what the window brought and pull into `next`. */
static enum dtw_status
exchange(struct loop *l, const struct loop_batch *batch, struct dtw_result *r)
{
    const float *const *g = batch->n_rows > 0 ? (const float *const *)l->gradients : NULL;

    if (l->under_way)
        return overlap_finish(l, r);
    return dtw_step(l->plan.client, g, l->next, batch->n_rows, batch->n_batches, r, &l->err);
}

static enum dtw_status
sync_step(struct loop *l, const struct loop_batch *batch)
{
    struct dtw_result r = {0};

    enum dtw_status s = exchange(l, batch, &r);
    if (s == DTW_LOST)
        return rejoin(l);
    if (s != DTW_OK)
        return s;
    count_push(l, batch, &r);
    take_next(l);
    l->step = step_of_round(l, dtw_worker_step(l->plan.client));
    return DTW_OK;
}

const struct loop_exchange loop_exchange_sync = {sync_begin, sync_step, NULL, NULL};

/* Asynchronous: the step is this worker's own count of batches; values are what psd has at the time. */
static enum dtw_status
async_pull(struct loop *l)
{
    struct dtw_handle *h = NULL;

    enum dtw_status s = dtw_pull(l->plan.client, l->next, 0, &h, &l->err);
    if (s == DTW_OK)
        s = dtw_wait(h, -1, NULL, &l->err);
    if (s == DTW_OK)
        take_next(l);
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
    enum dtw_status s = declare_all(l);
    if (s == DTW_OK)
        s = dtw_init(l->plan.client, fill, l, NULL, &l->err);
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

    enum dtw_status s = exchange(l, batch, &r);
    if (s == DTW_OK) {
        count_push(l, batch, &r);
        if (r.accumulated > 0)
            staleness_add(&l->result.staleness, r.staleness);
        take_next(l);
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
