/*
 * loop_compute.c - the gradients of a window.
 *
 * With --overlap the exchange of the window before may still be open: its values are waited for where the model needs
 * them, and when the last ones have come, before the first gradient is written, that exchange is over as any other.
 * Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

#include <errno.h>
#include <math.h>
#include <poll.h>

#include "proto/base/clock.h"

/* Wait `ms`; true when the loop is to stop. */
static bool
stop_wanted(const struct loop *l, int64_t ms)
{
    struct pollfd p = {.fd = l->plan.stop_fd, .events = POLLIN, .revents = 0};
    int64_t deadline = dt_deadline(dt_now_ms(), ms);

    if (p.fd < 0) {
        if (ms > 0)
            dt_sleep_ms(ms);
        return false;
    }
    for (;;) {
        int timeout = ms > 0 ? dt_poll_timeout(dt_now_ms(), deadline) : 0;
        int n = poll(&p, 1, timeout);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0 && dt_now_ms() >= deadline)
            return false;
    }
}

static enum dtw_status
exchange_within(struct loop *l, const struct loop_batch *batch, uint64_t length)
{
    phases_enter(&l->phases, PHASE_WAIT);
    enum dtw_status s = l->exchange->within(l, batch, length);
    phases_enter(&l->phases, PHASE_OTHER);
    return s;
}

/* As long as the imitated machine computes. */
static bool
stop_after_delay(struct loop *l)
{
    phases_enter(&l->phases, PHASE_COMPUTE);
    bool stop = stop_wanted(l, l->plan.step_delay_ms);
    phases_enter(&l->phases, PHASE_OTHER);
    return stop;
}

/* The model is going to read a variable. */
static bool
need(void *arg, uint32_t variable)
{
    struct loop *l = arg;

    if (!overlap_is_coming(l) || overlap_wait(l, variable))
        return true;
    l->went_on = overlap_settle(l);
    if (l->went_on)
        overlap_start(l);
    return l->went_on;
}

/* The gradient of `step` at the values, or at those that are coming. */
static void
compute_gradient(struct loop *l, uint64_t step, struct replicas_sum *sum)
{
    const float *const *point = overlap_point(l);

    phases_enter(&l->phases, PHASE_COMPUTE);
    model_on_need(l->plan.model, point ? need : NULL, l);
    batches_compute(l->batches, step, point ? point : window_point(&l->window, l->values), sum);
    model_on_need(l->plan.model, NULL, NULL);
    model_on_ready(l->plan.model, NULL, NULL);
    phases_enter(&l->phases, PHASE_OTHER);
}

/* One step: its gradient goes into the window of `length` batches. False: it is not finite, or was given up. */
static bool
compute(struct loop *l, uint64_t length, struct loop_batch *batch)
{
    uint64_t step = overlap_step(l) + batch->n_steps;
    bool within = l->exchange->within && batch->n_steps == 0;
    struct replicas_sum sum;

    overlap_plan(l, batch, step, batch->n_steps + 1 == length);
    if (!overlap_is_coming(l))
        overlap_start(l);
    compute_gradient(l, step, &sum);
    if (!l->went_on)
        return false;
    batch->n_steps++;
    if (sum.n_rows > 0)
        l->result.last.loss = sum.loss;
    if (sum.n_rows > 0 && !isfinite(sum.loss))
        return false;
    batch->n_rows += sum.n_rows;
    batch->n_batches += sum.n_batches;
    if (within && l->plan.algorithm->order == ORDER_WITHIN)
        l->within = exchange_within(l, batch, length);
    if (sum.n_rows > 0 && !l->overlap.handle && l->within == DTW_OK) {
        train_extras_clip_norm(&l->plan.extras, l->plan.model, l->gradients);
        window_add(&l->window, l->values, l->gradients);
    }
    return true;
}

/* T, but for the first one of ORDER_FIRST and the last. */
static uint64_t
next_length(struct loop *l)
{
    uint64_t left = l->plan.steps - overlap_step(l);
    uint64_t n = l->plan.window;

    if (l->plan.algorithm->order == ORDER_FIRST && l->n_windows == 0)
        n--;
    l->n_windows++;
    return n < left ? n : left;
}

/* Whatever is coming is answered or given up. */
static enum loop_end
stop(struct loop *l)
{
    if (overlap_is_coming(l))
        overlap_settle(l);
    return l->result.end == LOOP_RUNNING ? LOOP_STOPPED : l->result.end;
}

/* No gradient: the loop has ended, or begins anew at values that nobody expected, or has no finite one. */
static enum loop_end
give_up(struct loop *l)
{
    if (!l->went_on)
        return l->result.end;
    overlap_cancel(l);
    return loop_not_finite(l);
}

enum loop_end
loop_compute(struct loop *l, struct loop_batch *batch)
{
    uint64_t length = next_length(l);

    *batch = (struct loop_batch){0};
    l->went_on = true;
    if (algorithm_needs_ps(l->plan.algorithm))
        l->window.version = l->plan.link.ops->worker_step(l->plan.link.self);
    l->within = DTW_OK;
    window_open(&l->window, l->values);
    while (batch->n_steps < length && l->within == DTW_OK) {
        if (stop_after_delay(l))
            return stop(l);
        if (!compute(l, length, batch))
            return give_up(l);
    }
    if (l->overlap.handle)
        window_end(&l->window);
    else
        window_close(&l->window, l->values, l->gradients);
    return LOOP_RUNNING;
}
