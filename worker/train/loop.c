/*
 * loop.c - from step to step: rows, gradient, exchange, accuracy at epoch ends.
 *
 * Invariants: `values` always hold one whole step (a pull fills `next`, which takes its place when it is
 * complete). The step comes from the exchange: it may go by more than one when others closed rounds without us.
 * Threads: the caller's alone.
 */
#include "worker/train/loop_state.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"

static bool
has_data(const struct loop *l)
{
    return model_needs_data(l->plan.model);
}

static bool
allocate(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        uint64_t n = model_variable(l->plan.model, i)->elements;
        l->values[i] = dtw_alloc(n);
        l->next[i] = dtw_alloc(n);
        l->gradients[i] = dtw_alloc(n);
        if (!l->values[i] || !l->next[i] || !l->gradients[i])
            return false;
        if (!algorithm_is_elastic(l->plan.algorithm))
            continue;
        l->centre[i] = dtw_alloc(n);
        l->moves[i] = dtw_alloc(n);
        if (!l->centre[i] || !l->moves[i])
            return false;
    }
    return true;
}

static const struct loop_exchange *
find_exchange(const struct algorithm *a)
{
    enum algorithm_consistency c = a->consistency;

    if (c == CONSISTENCY_LOCAL)
        return &loop_exchange_local;
    if (algorithm_is_elastic(a))
        return c == CONSISTENCY_SYNC ? &loop_exchange_elastic_sync : &loop_exchange_elastic;
    return c == CONSISTENCY_SYNC ? &loop_exchange_sync : &loop_exchange_async;
}

static enum dt_status
create_batches(struct loop *l, struct dt_error *err)
{
    const struct loop_plan *p = &l->plan;
    struct replicas_plan replicas = {.n = p->replicas ? p->replicas : 1,
                                     .model = p->model,
                                     .train = p->train,
                                     .gradients = l->gradients};
    struct batches_plan plan = {.share = order_share(p->aggregate, p->workers, p->rank),
                                .by_batches = p->by_batches};

    replicas.order = (struct order){p->seed, has_data(l) ? p->train->n_rows : 0,
                                    order_parts(p->aggregate, p->workers) * replicas.n, p->batch};
    plan.replicas = replicas;
    return batches_create(&plan, &l->batches, err);
}

enum dt_status
loop_create(const struct loop_plan *plan, struct loop **out, struct dt_error *err)
{
    enum dt_status s = DT_OK;

    *out = NULL;
    struct loop *l = calloc(1, sizeof(*l));
    if (!l)
        return dt_fail(err, DT_E_NO_MEMORY, "training loop: memory is short");
    l->plan = *plan;
    if (!l->plan.link.ops)
        l->plan.link = link_of_client(plan->client);
    l->n_variables = model_n_variables(plan->model);
    l->exchange = find_exchange(plan->algorithm);
    if (l->plan.window == 0)
        l->plan.window = plan->algorithm->window;
    const struct window_rates rates = {
        .local = algorithm_has_server_rate(plan->algorithm) ? plan->local_lr : plan->lr,
        .server = plan->lr,
        .momentum = plan->momentum,
        .extras = &l->plan.extras,
    };
    s = window_init(&l->window, plan->algorithm, plan->model, l->plan.window, &rates, err);
    if (plan->rank_lr > 0)
        l->window.scale = plan->rank_lr;
    if (s == DT_OK && !allocate(l))
        s = dt_fail(err, DT_E_NO_MEMORY, "training loop: no memory for values and gradients");
    if (s == DT_OK)
        s = create_batches(l, err);
    if (s != DT_OK) {
        loop_destroy(l);
        return s;
    }
    *out = l;
    return DT_OK;
}

void
loop_destroy(struct loop *l)
{
    if (!l)
        return;
    batches_destroy(l->batches);
    for (uint32_t i = 0; i < l->n_variables; i++) {
        uint64_t n = model_variable(l->plan.model, i)->elements;
        dtw_free(l->values[i], n);
        dtw_free(l->next[i], n);
        dtw_free(l->gradients[i], n);
        dtw_free(l->centre[i], n);
        dtw_free(l->moves[i], n);
    }
    window_deinit(&l->window);
    free(l);
}

/* What the training has made: the centre where there is one. */
static const float *const *
shown(const struct loop *l)
{
    bool is_elastic = algorithm_is_elastic(l->plan.algorithm);

    return (const float *const *)(is_elastic ? l->centre : l->values);
}

const float *const *
loop_values(const struct loop *l)
{
    return l->have_values ? shown(l) : NULL;
}

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

static enum loop_end
not_finite(struct loop *l)
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

static enum dtw_status
exchange_within(struct loop *l, const struct loop_batch *batch, uint64_t length)
{
    phases_enter(&l->phases, exchange_phase(l));
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

/* One step at the values: its gradient goes into the window of `length` batches. False: it is not finite. */
static bool
compute(struct loop *l, uint64_t length, struct loop_batch *batch)
{
    uint64_t step = l->step + batch->n_steps;
    bool overlaps = batch->n_steps + 1 == length && overlap_begin(l, batch, step);
    bool within = l->exchange->within && batch->n_steps == 0;
    const float *const *point = window_point(&l->window, l->values);
    struct replicas_sum sum;

    phases_enter(&l->phases, PHASE_COMPUTE);
    batches_compute(l->batches, step, point, &sum);
    phases_enter(&l->phases, PHASE_OTHER);
    model_on_ready(l->plan.model, NULL, NULL);
    batch->n_steps++;
    if (sum.n_rows > 0)
        l->result.last.loss = sum.loss;
    if (sum.n_rows > 0 && !isfinite(sum.loss))
        return false;
    batch->n_rows += sum.n_rows;
    batch->n_batches += sum.n_batches;
    if (within && l->plan.algorithm->order == ORDER_WITHIN)
        l->within = exchange_within(l, batch, length);
    if (sum.n_rows > 0 && !overlaps && l->within == DTW_OK) {
        train_extras_clip_norm(&l->plan.extras, l->plan.model, l->gradients);
        window_add(&l->window, l->values, l->gradients);
    }
    return true;
}

/* T, but for the first one of ORDER_FIRST and the last. */
static uint64_t
next_length(struct loop *l)
{
    uint64_t left = l->plan.steps - l->step;
    uint64_t n = l->plan.window;

    if (l->plan.algorithm->order == ORDER_FIRST && l->n_windows == 0)
        n--;
    l->n_windows++;
    return n < left ? n : left;
}

/* T batches; LOOP_RUNNING: `gradients` hold what is to be pushed. */
static enum loop_end
compute_window(struct loop *l, struct loop_batch *batch)
{
    uint64_t length = next_length(l);

    *batch = (struct loop_batch){0};
    if (algorithm_needs_ps(l->plan.algorithm))
        l->window.version = l->plan.link.ops->worker_step(l->plan.link.self);
    l->within = DTW_OK;
    window_open(&l->window, l->values);
    while (batch->n_steps < length && l->within == DTW_OK) {
        if (stop_after_delay(l))
            return LOOP_STOPPED;
        if (!compute(l, length, batch)) {
            overlap_cancel(l);
            return not_finite(l);
        }
    }
    if (l->under_way)
        window_end(&l->window);
    else
        window_close(&l->window, l->values, l->gradients);
    return LOOP_RUNNING;
}

/* An epoch is over: accuracy at the values pulled, the same in every rank. */
static bool
target_reached(struct loop *l)
{
    struct loop_point *p = &l->result.last;
    struct model_score score = {NAN, NAN};

    if (l->plan.test && l->plan.test->n_rows > 0)
        model_evaluate(l->plan.model, l->plan.test, shown(l), &score);
    p->accuracy = score.accuracy;
    return l->plan.target_accuracy > 0 && score.accuracy >= l->plan.target_accuracy;
}

/* The step went from `before` to l->step. */
static void
account(struct loop *l, uint64_t before)
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

static enum loop_end
end_of(struct loop *l, enum dtw_status s)
{
    if (s == DTW_INTERRUPTED)
        return LOOP_STOPPED;
    if (s == DTW_NOT_FINITE)
        return not_finite(l);
    l->result.status = s;
    snprintf(l->result.text, sizeof(l->result.text), "%s",
             l->err.text[0] ? l->err.text : dtw_strerror(s));
    return LOOP_FAILED;
}

static enum loop_end
one_step(struct loop *l)
{
    struct loop_result *r = &l->result;
    struct loop_batch batch;
    uint64_t before = l->step;

    enum loop_end end = compute_window(l, &batch);
    if (end != LOOP_RUNNING)
        return end;
    enum dtw_status s = exchange_step(l, &batch);
    if (s != DTW_OK)
        return end_of(l, s);
    account(l, before);
    if (r->last.epoch_end)
        r->target_reached = target_reached(l);
    if (l->plan.point)
        l->plan.point(l->plan.point_arg, &r->last);
    if (r->target_reached && l->exchange->stop_all)
        l->exchange->stop_all(l);
    return r->target_reached || l->stopped_by_all || l->step >= l->plan.steps ? LOOP_DONE
                                                                              : LOOP_RUNNING;
}

void
loop_begin(struct loop *l)
{
    struct loop_result *r = &l->result;

    r->last.steps = l->plan.steps;
    r->last.phases = r->phases;
    r->last.loss = r->last.accuracy = NAN;
    if (algorithm_is_async(l->plan.algorithm))
        r->last.staleness = &r->staleness;
    enum dtw_status s = l->exchange->begin(l);
    l->start = dt_now_seconds();
    phases_start(&l->phases);
    if (s != DTW_OK)
        r->end = end_of(l, s);
    else
        account(l, 0);
    r->last.epoch_end = false;
    if (s == DTW_OK && l->step >= l->plan.steps)
        r->end = LOOP_DONE;
}

bool
loop_next(struct loop *l)
{
    if (l->result.end == LOOP_RUNNING)
        l->result.end = one_step(l);
    return l->result.end == LOOP_RUNNING;
}

void
loop_end(struct loop *l, struct loop_result *result)
{
    struct loop_result *r = &l->result;

    if (r->end == LOOP_DONE && l->exchange->finish)
        l->exchange->finish(l);
    r->unseen = l->rows_due > l->rows_taken ? l->rows_due - l->rows_taken : 0;
    *result = *r;
}

void
loop_run(struct loop *l, struct loop_result *result)
{
    loop_begin(l);
    while (loop_next(l))
        ;
    loop_end(l, result);
}
