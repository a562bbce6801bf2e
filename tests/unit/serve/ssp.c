/*
 * ssp.c - stale synchronous parallel jobs through the real dispatch: who waits for whom, and what wakes.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cluster.h"
#include "psd/serve/shard.h"

TestSuite(ssp, .timeout = 80);

struct fixture {
    struct cluster *c;
    struct dt_job_params params;
    struct worker_at w[3];
    uint8_t homes[2];
};

static void
start(struct fixture *f, int64_t bound, uint32_t present)
{
    uint32_t i;

    memset(f, 0, sizeof(*f));
    f->c = cluster_create(2);
    dt_job_params_default(&f->params);
    f->params.workers = 3;
    f->params.consistency = DT_SSP;
    f->params.staleness_bound = bound;
    f->params.lease_ms = 1000;
    for (i = 0; i < present; i++) {
        worker_at_init(&f->w[i], i);
        cluster_start_job(f->c, &f->w[i], "job", &f->params, 2, 2, 1, 0, f->homes);
    }
    if (present > 0)
        cr_assert_neq(f->homes[0], f->homes[1], "two shards");
}

/* Push and pull both variables at `clock` (after it); request ids in `ids`. `g` NULL: abstain. */
static void
step(struct fixture *f, struct worker_at *w, uint64_t clock, const float *g, uint64_t ids[2])
{
    uint32_t v, n = 2;

    w->counter++;
    for (v = 0; v < 2; v++) {
        struct dt_data d = {.counter = w->counter,
                            .weight = g ? 1 : 0,
                            .count = g ? 1 : 0,
                            .clock = clock,
                            .n_items = 1};

        d.items[0].variable = v;
        d.items[0].want = clock;
        ids[v] = worker_data(f->c, w, f->homes[v], DT_OP_PUSHPULL, &d, g ? &g : NULL, &n);
    }
}

/* 1: answered, with what it got in *x; 0: parked, *waiting says for whom */
static bool
is_answered(struct fixture *f, uint64_t id, float *x, struct dt_waiting *waiting)
{
    struct answer *a = cluster_take(f->c, id);
    bool answered;

    cr_assert_not_null(a);
    cr_assert(a->head.status == DT_OK || a->head.status == DT_PARKED, "%s", a->head.text);
    answered = a->head.status == DT_OK;
    if (answered && x)
        *x = a->frames[0][0];
    if (!answered && waiting)
        cr_assert_eq(dt_waiting_decode(&a->head, waiting), DT_OK);
    answer_free(a);
    return answered;
}

static void
expect_through(struct fixture *f, const uint64_t ids[2], float value)
{
    uint32_t v;
    float x;

    for (v = 0; v < 2; v++) {
        cr_assert(is_answered(f, ids[v], &x, NULL), "variable %u", v);
        cr_assert_eq(x, value, "variable %u: %g, not %g", v, x, value);
    }
}

static void
expect_parked(struct fixture *f, const uint64_t ids[2], uint64_t clock, uint32_t n, uint32_t rank)
{
    struct dt_waiting w;
    uint32_t v;

    for (v = 0; v < 2; v++) {
        cr_assert(!is_answered(f, ids[v], NULL, &w));
        cr_assert_eq(w.reason, DT_WAIT_CLOCK);
        cr_assert_eq(w.step, clock);
        cr_assert_eq(w.n_ranks, n);
        cr_assert_eq(w.ranks[0], rank);
        cr_assert_null(cluster_take(f->c, ids[v]), "parked");
    }
}

static const float one[2] = {-1, -1};

Test(ssp, nobody_is_more_than_the_bound_ahead)
{
    struct fixture f;
    uint64_t a[2], b[2], c[2];

    start(&f, 1, 3);
    step(&f, &f.w[0], 1, one, a);
    expect_through(&f, a, 1);
    step(&f, &f.w[0], 2, one, a); /* own updates are seen, the others are at 0: 2 - 1 > 0 */
    expect_parked(&f, a, 1, 2, 1);
    step(&f, &f.w[1], 1, one, b);
    expect_through(&f, b, 3);
    cr_assert_null(cluster_take(f.c, a[0]), "rank 2 is at 0");
    step(&f, &f.w[2], 1, NULL, c); /* an abstention is a step, too */
    expect_through(&f, c, 3);
    expect_through(&f, a, 3);
    cluster_destroy(f.c);
}

Test(ssp, bound_zero_is_a_barrier_with_all_updates)
{
    struct fixture f;
    uint64_t a[2], b[2], c[2], k;

    start(&f, 0, 3);
    for (k = 1; k <= 3; k++) {
        step(&f, &f.w[0], k, one, a);
        expect_parked(&f, a, k, 2, 1);
        step(&f, &f.w[2], k, one, c);
        expect_parked(&f, c, k, 1, 1);
        step(&f, &f.w[1], k, one, b);
        expect_through(&f, b, (float)(3 * k));
        expect_through(&f, a, (float)(3 * k));
        expect_through(&f, c, (float)(3 * k));
    }
    cluster_destroy(f.c);
}

Test(ssp, a_slice_knows_a_clock_only_with_the_update_that_it_stands_for)
{
    struct fixture f;
    uint64_t a[2], b[2];
    struct dt_data d = {.counter = 1, .weight = 1, .count = 1, .clock = 1, .n_items = 1};
    const float *g = one;
    uint32_t n = 2;

    start(&f, 0, 2);
    cr_assert_eq(worker_step_op(f.c, &f.w[1], DT_OP_CLOCK, 1, NULL), DT_OK, "batches, no clock");
    step(&f, &f.w[0], 1, one, a);
    expect_parked(&f, a, 1, 2, 1);
    f.w[1].counter = 1; /* one of the two messages of a push */
    b[0] = worker_data(f.c, &f.w[1], f.homes[0], DT_OP_PUSH, &d, &g, &n);
    cr_assert(is_answered(&f, b[0], NULL, NULL));
    cr_assert_null(cluster_take(f.c, a[0]), "rank 2 has not come: it is expected from step 0");
    cluster_destroy(f.c);
}

Test(ssp, who_is_lost_or_leaves_counts_no_more)
{
    struct fixture f;
    uint64_t a[2], t;

    start(&f, 0, 3);
    step(&f, &f.w[0], 1, one, a);
    expect_parked(&f, a, 1, 2, 1);
    cr_assert_eq(worker_step_op(f.c, &f.w[1], DT_OP_LEAVE, DT_NO_VERSION, NULL), DT_OK);
    cluster_settle(f.c);
    cr_assert_null(cluster_take(f.c, a[0]));
    for (t = 0; t < 8; t++) { /* rank 2 is silent */
        struct dt_buffer header = {0};

        cluster_tick(f.c, 200);
        cluster_settle(f.c);
        dt_heartbeat_encode(&header, ++f.c->next_request, f.w[0].sessions[0]);
        cluster_send(f.c, 0, PEER_LOCAL, &f.w[0].routes[0], &header, NULL, 0);
        answer_free(cluster_take(f.c, f.c->next_request));
    }
    cluster_settle(f.c);
    expect_through(&f, a, 1);
    cluster_destroy(f.c);
}

Test(ssp, a_joiner_starts_at_the_least_clock_and_then_counts)
{
    struct fixture f;
    struct worker_at late;
    uint64_t a[2], b[2], c[2], l[2], k, first = 0;

    start(&f, 1, 3);
    for (k = 1; k <= 4; k++) {
        step(&f, &f.w[1], k, one, b);
        step(&f, &f.w[2], k, one, c);
        if (k < 4)
            step(&f, &f.w[0], k, one, a);
    }
    worker_at_init(&late, 7);
    worker_hello_all(f.c, &late, "job", &f.params);
    cr_assert(late.must_join);
    step(&f, &f.w[0], 4, one, a); /* not yet a member: it holds nobody */
    expect_through(&f, a, 12);
    cr_assert_eq(worker_step_op(f.c, &late, DT_OP_JOIN, 0, &first), DT_OK);
    cr_assert_eq(first, 4);
    step(&f, &f.w[0], 5, one, a);
    expect_through(&f, a, 13);
    step(&f, &f.w[0], 6, one, a);
    expect_parked(&f, a, 5, 3, 1);
    step(&f, &f.w[1], 5, one, b);
    step(&f, &f.w[2], 5, one, c);
    cr_assert_null(cluster_take(f.c, a[0]), "the joiner is at 4");
    step(&f, &late, 5, one, l);
    expect_through(&f, l, 17);
    expect_through(&f, a, 17);
    cluster_destroy(f.c);
}

static void
say_clock(struct fixture *f, struct worker_at *w, uint64_t clock)
{
    struct dt_buffer header = {0};
    uint64_t id = ++f->c->next_request;
    struct answer *a;

    dt_clock_encode(&header, id, w->sessions[0], 0, clock);
    cluster_send(f->c, 0, PEER_LOCAL, &w->routes[0], &header, NULL, 0);
    cluster_settle(f->c);
    a = cluster_take(f->c, id);
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK);
    answer_free(a);
}

Test(ssp, clock_without_a_push_and_a_wider_bound_wake)
{
    struct fixture f;
    struct view *v;
    uint64_t a[2];

    start(&f, 0, 3);
    cr_assert_eq(worker_step_op(f.c, &f.w[1], DT_OP_LEAVE, DT_NO_VERSION, NULL), DT_OK);
    cluster_settle(f.c);
    step(&f, &f.w[0], 1, one, a);
    expect_parked(&f, a, 1, 1, 2);
    say_clock(&f, &f.w[2], 1);
    expect_through(&f, a, 1);
    step(&f, &f.w[0], 2, one, a);
    expect_parked(&f, a, 2, 1, 2);
    v = view_find_name(f.c->shards[0], "job");
    atomic_store(&v->job->shared->staleness_bound, 1);
    say_clock(&f, &f.w[2], 1); /* raises nothing; the shards look at who waits */
    expect_through(&f, a, 2);
    cluster_destroy(f.c);
}

Test(ssp, odd_clocks_do_no_harm)
{
    struct dt_data d = {.counter = 1, .weight = 1, .count = 1, .n_items = 1};
    const float *g = one;
    struct fixture f;
    uint64_t a[2], first = 0;
    uint32_t n = 2;
    struct answer *answer;

    start(&f, 0, 3);
    d.clock = DT_MAX_CLOCK + 1;
    answer = cluster_take(f.c, worker_data(f.c, &f.w[1], f.homes[0], DT_OP_PUSH, &d, &g, &n));
    cr_assert_eq(answer->head.status, DT_R_BAD_VALUE);
    answer_free(answer);
    cr_assert_eq(worker_step_op(f.c, &f.w[1], DT_OP_JOIN, UINT64_MAX / 2, &first), DT_R_MALFORMED);
    say_clock(&f, &f.w[1], DT_MAX_CLOCK); /* it takes no more steps */
    say_clock(&f, &f.w[2], DT_MAX_CLOCK);
    step(&f, &f.w[0], UINT64_C(1) << 40, one, a);
    expect_through(&f, a, 1);
    step(&f, &f.w[0], 7, one, a); /* clocks do not go back */
    expect_through(&f, a, 2);
    cluster_destroy(f.c);
}

static enum dt_status
hello(struct cluster *c, const struct dt_job_params *p)
{
    struct dt_hello_reply reply;
    struct worker_at w;

    worker_at_init(&w, 0);
    return worker_hello(c, &w, 0, "other", p, false, &reply);
}

Test(ssp, what_makes_no_sense_is_refused)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p;

    dt_job_params_default(&p);
    p.staleness_bound = 1;
    cr_assert_eq(hello(c, &p), DT_R_BAD_VALUE, "a synchronous job has none");
    p.consistency = DT_SSP;
    p.locking = DT_LOCK_NONE;
    cr_assert_eq(hello(c, &p), DT_R_BAD_VALUE);
    p.locking = DT_LOCK_SLICE;
    p.round_timeout_ms = 5;
    cr_assert_eq(hello(c, &p), DT_R_BAD_VALUE);
    p.round_timeout_ms = 0;
    cr_assert_eq(hello(c, &p), DT_OK);
    cluster_destroy(c);
}
