/*
 * loop.c - from step to step: gradients of a window (loop_compute.c), their exchange (loop_over.c).
 *
 * Invariants: `values` always hold one whole step (a pull fills `next`, which takes its place when it is
 * complete). The step comes from the exchange: it may go by more than one when others closed rounds without us.
 * Threads: the caller's alone.
 */
#include "worker/train/loop_state.h"

#include <math.h>
#include <stdlib.h>

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

const float *const *
loop_values(const struct loop *l)
{
    return l->have_values ? loop_shown(l) : NULL;
}

/* An exchange that is left open ends in the next one's first gradient. */
static enum loop_end
one_step(struct loop *l)
{
    struct loop_batch batch;

    enum loop_end end = loop_compute(l, &batch);
    if (end != LOOP_RUNNING || !l->went_on || overlap_leave_open(l, &batch))
        return end;
    return loop_over(l, &batch);
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
        r->end = loop_end_of(l, s);
    else
        loop_account(l, 0);
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
