/*
 * async.c - asynchronous jobs through the real dispatch: updates at arrival, staleness, the global
 * step, WAIT_STEP and the stop step.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "proto/wire/set.h"

TestSuite(async, .timeout = 80);

struct fixture {
    struct cluster *c;
    struct dt_job_params params;
    struct worker_at a, b;
    uint8_t homes[1];
};

static void
start_with(struct fixture *f, int64_t max_staleness, float lr)
{
    memset(f, 0, sizeof(*f));
    f->c = cluster_create(2);
    dt_job_params_default(&f->params);
    f->params.workers = 2;
    f->params.consistency = DT_ASYNC;
    f->params.max_staleness = max_staleness;
    f->params.lease_ms = 3600000;
    worker_at_init(&f->a, 0);
    worker_at_init(&f->b, 1);
    cluster_start_job(f->c, &f->a, "job", &f->params, 1, 2, lr, 10, f->homes);
    cluster_start_job(f->c, &f->b, "job", &f->params, 1, 2, lr, 10, f->homes);
}

static void
start(struct fixture *f, int64_t max_staleness)
{
    start_with(f, max_staleness, 1);
}

/* A push of g computed at `version`; returns the fate, *after the version told. */
static enum dt_fate
push(struct fixture *f, struct worker_at *w, uint64_t version, const float *g, uint64_t *after)
{
    struct dt_data d = {
        .counter = ++w->counter, .weight = g ? 1 : 0, .count = g ? 1 : 0, .n_items = 1};
    struct dt_data_reply reply;
    struct answer *answer;
    uint32_t n = 2;

    d.items[0].version = version;
    answer =
        cluster_take(f->c, worker_data(f->c, w, f->homes[0], DT_OP_PUSH, &d, g ? &g : NULL, &n));
    cr_assert_not_null(answer);
    cr_assert_eq(answer->head.status, DT_OK, "%s", answer->head.text);
    cr_assert_eq(dt_data_reply_decode(&answer->head, &reply), DT_OK);
    *after = reply.items[0].push_version;
    answer_free(answer);
    return (enum dt_fate)reply.items[0].fate;
}

static float
value(struct fixture *f)
{
    struct dt_data d = {.n_items = 1};
    struct answer *answer;
    float x;

    d.items[0].version = DT_NO_VERSION;
    answer = cluster_take(f->c, worker_data(f->c, &f->a, f->homes[0], DT_OP_PULL, &d, NULL, NULL));
    cr_assert_not_null(answer);
    x = answer->frames[0][1];
    answer_free(answer);
    return x;
}

Test(async, a_push_is_applied_when_it_arrives_and_its_staleness_is_told)
{
    struct fixture f;
    float g[2] = {1, 3};
    uint64_t after;

    start(&f, -1);
    cr_assert_eq(push(&f, &f.a, 0, g, &after), DT_FATE_APPLIED);
    cr_assert_eq(after, 1);
    cr_assert_eq(push(&f, &f.b, 0, g, &after), DT_FATE_APPLIED);
    cr_assert_eq(after - 1 - 0, 1, "one update between its pull and its push");
    cr_assert_eq(value(&f), 10 - 6);
    cr_assert_eq(push(&f, &f.b, 1, NULL, &after), DT_FATE_APPLIED, "an abstention");
    cr_assert_eq(after, 2);
    cr_assert_eq(push(&f, &f.b, 9, g, &after), DT_FATE_AHEAD);
    cluster_destroy(f.c);
}

Test(async, add_damped_divides_a_push_by_its_staleness_and_one)
{
    struct fixture f;
    float d[2] = {1, 3};
    uint64_t after;

    start_with(&f, -1, -1);
    cr_assert_eq(push(&f, &f.a, 0, d, &after), DT_FATE_APPLIED);
    cr_expect_float_eq(value(&f), 13, 0);
    cr_assert_eq(push(&f, &f.b, 0, d, &after), DT_FATE_APPLIED);
    cr_expect_float_eq(value(&f), 14.5f, 0, "3 / 2");
    cr_assert_eq(push(&f, &f.b, 0, d, &after), DT_FATE_APPLIED);
    cr_expect_float_eq(value(&f), 15.5f, 0, "3 / 3");
    cr_assert_eq(push(&f, &f.a, 3, d, &after), DT_FATE_APPLIED);
    cr_expect_float_eq(value(&f), 18.5f, 0);
    cluster_destroy(f.c);
}

Test(async, a_repeated_push_is_applied_once)
{
    struct fixture f;
    float g[2] = {1, 3};
    uint64_t after;

    start(&f, -1);
    cr_assert_eq(push(&f, &f.a, 0, g, &after), DT_FATE_APPLIED);
    f.a.counter--;
    cr_assert_eq(push(&f, &f.a, 0, g, &after), DT_FATE_APPLIED, "the stored fate");
    cr_assert_eq(value(&f), 7);
    cluster_destroy(f.c);
}

Test(async, too_stale_is_refused_with_its_fate)
{
    struct fixture f;
    float g[2] = {1, 1};
    uint64_t after;

    start(&f, 1);
    cr_assert_eq(push(&f, &f.a, 0, g, &after), DT_FATE_APPLIED);
    cr_assert_eq(push(&f, &f.a, 0, g, &after), DT_FATE_APPLIED);
    cr_assert_eq(push(&f, &f.b, 0, g, &after), DT_FATE_STALE);
    cr_assert_eq(after, 2);
    cr_assert_eq(value(&f), 8);
    cluster_destroy(f.c);
}

Test(async, who_comes_late_takes_part_at_once)
{
    struct fixture f;
    struct worker_at late;
    float g[2] = {1, 1};
    uint64_t after;

    start(&f, -1);
    worker_at_init(&late, 7);
    worker_hello_all(f.c, &late, "job", &f.params);
    cr_assert(!late.must_join);
    cr_assert_eq(push(&f, &late, 0, g, &after), DT_FATE_APPLIED);
    cluster_destroy(f.c);
}

static enum dt_status
set_stop(struct fixture *f, struct worker_at *w, uint64_t value, uint64_t *in_force)
{
    struct dt_set m = {.key = "stop_step", .value = value};
    struct dt_buffer header = {0};
    uint64_t id = ++f->c->next_request;
    struct dt_step_msg reply;
    struct answer *a;
    enum dt_status status;

    dt_set_encode(&header, id, w->sessions[0], &m);
    cluster_send(f->c, 0, PEER_LOCAL, &w->routes[0], &header, NULL, 0);
    a = cluster_take(f->c, id);
    status = a->head.status;
    cr_assert_eq(dt_step_decode(&a->head, &reply), DT_OK);
    *in_force = reply.step;
    answer_free(a);
    return status;
}

Test(async, the_global_step_adds_up_finished_steps_and_wakes_who_waits)
{
    struct fixture f;
    struct dt_buffer header = {0};
    struct answer *a;
    uint64_t id, stop;

    start(&f, -1);
    id = ++f.c->next_request;
    dt_step_encode(&header, DT_OP_WAIT_STEP, id, f.b.sessions[0], 5);
    cluster_send(f.c, 0, PEER_LOCAL, &f.b.routes[0], &header, NULL, 0);
    a = cluster_take(f.c, id);
    cr_assert_eq(a->head.status, DT_PARKED);
    answer_free(a);
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_CLOCK, 3, &stop), DT_OK);
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_CLOCK, 3, &stop), DT_OK, "repeated: no harm");
    cr_assert_eq(stop, DT_NO_VERSION);
    cr_assert_null(cluster_take(f.c, id), "3 of 5");
    cr_assert_eq(worker_step_op(f.c, &f.b, DT_OP_CLOCK, 2, &stop), DT_OK);
    a = cluster_take(f.c, id);
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK);
    cr_assert_eq(a->head.step, 5);
    answer_free(a);
    cr_assert_eq(set_stop(&f, &f.a, 40, &stop), DT_OK);
    cr_assert_eq(set_stop(&f, &f.b, 50, &stop), DT_OK);
    cr_assert_eq(stop, 40, "the least counts");
    cr_assert_eq(worker_step_op(f.c, &f.b, DT_OP_CLOCK, 3, &stop), DT_OK);
    cr_assert_eq(stop, 40, "CLOCK's answer carries it");
    cluster_destroy(f.c);
}

static uint64_t
wait_step(struct fixture *f, struct worker_at *w, uint64_t step)
{
    struct dt_buffer header = {0};
    uint64_t id = ++f->c->next_request;
    struct answer *a;

    dt_step_encode(&header, DT_OP_WAIT_STEP, id, w->sessions[0], step);
    cluster_send(f->c, 0, PEER_LOCAL, &w->routes[0], &header, NULL, 0);
    a = cluster_take(f->c, id);
    cr_assert_eq(a->head.status, DT_PARKED);
    answer_free(a);
    return id;
}

static void
expect_woken(struct fixture *f, uint64_t id)
{
    struct answer *a = cluster_take(f->c, id);

    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK);
    answer_free(a);
}

Test(async, who_waits_for_a_step_past_the_stop_step_begins)
{
    struct fixture f;
    uint64_t id, stop;

    start(&f, -1);
    id = wait_step(&f, &f.b, 50);
    cr_assert_eq(set_stop(&f, &f.a, 50, &stop), DT_OK);
    cr_assert_null(cluster_take(f.c, id), "50 may come");
    cr_assert_eq(set_stop(&f, &f.a, 49, &stop), DT_OK);
    expect_woken(&f, id);
    cluster_destroy(f.c);
}

Test(async, who_waits_for_a_step_that_nobody_can_bring_begins)
{
    struct fixture f;
    uint64_t id, step;

    start(&f, -1);
    id = wait_step(&f, &f.b, 50);
    cluster_tick(f.c, 200);
    cr_assert_null(cluster_take(f.c, id), "rank 0 is there");
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_LEAVE, 0, &step), DT_OK);
    cluster_tick(f.c, 200);
    expect_woken(&f, id);
    cluster_destroy(f.c);
}

Test(async, one_that_is_still_expected_is_waited_for)
{
    struct fixture f;
    uint64_t id;

    memset(&f, 0, sizeof(f));
    f.c = cluster_create(2);
    dt_job_params_default(&f.params);
    f.params.workers = 2;
    f.params.consistency = DT_ASYNC;
    f.params.lease_ms = 3600000;
    worker_at_init(&f.a, 0);
    worker_at_init(&f.b, 1);
    cluster_start_job(f.c, &f.a, "job", &f.params, 1, 2, 1, 10, f.homes);
    id = wait_step(&f, &f.a, 5);
    cluster_tick(f.c, 200);
    cr_assert_null(cluster_take(f.c, id), "rank 1 is expected");
    cluster_start_job(f.c, &f.b, "job", &f.params, 1, 2, 1, 10, f.homes);
    cluster_tick(f.c, 200);
    cr_assert_null(cluster_take(f.c, id), "rank 1 is there");
    wait_step(&f, &f.b, 9);
    cluster_tick(f.c, 200);
    expect_woken(&f, id);
    cluster_destroy(f.c);
}

Test(async, combinations_without_sense_are_refused)
{
    struct cluster *c = cluster_create(1);
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    struct dt_job_params p;
    struct worker_at a;

    worker_at_init(&a, 0);
    dt_job_params_default(&p);
    p.max_staleness = 3;
    cr_assert_eq(worker_hello(c, &a, 0, "j", &p, false, reply), DT_R_BAD_VALUE);
    p.consistency = DT_ASYNC;
    p.aggregate = 1;
    cr_assert_eq(worker_hello(c, &a, 0, "j", &p, false, reply), DT_R_BAD_VALUE);
    p.consistency = DT_SSP;
    cr_assert_eq(worker_hello(c, &a, 0, "j", &p, false, reply), DT_R_BAD_VALUE);
    free(reply);
    cluster_destroy(c);
}

/* A thread of worker a waits, another trains: b must not be told that nobody brings its step. */
Test(async, a_worker_that_trains_does_not_count_as_waiting)
{
    struct fixture f;
    uint64_t a, b, stop;

    start(&f, -1);
    a = wait_step(&f, &f.a, 1000);
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_CLOCK, 1, &stop), DT_OK);
    b = wait_step(&f, &f.b, 500);
    cluster_tick(f.c, 200);
    cr_assert_eq(cluster_count(f.c, a), 0);
    cr_assert_eq(cluster_count(f.c, b), 0);
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_CLOCK, 500, &stop), DT_OK);
    expect_woken(&f, b);
    expect_woken(&f, (wait_step(&f, &f.a, 2000), a)); /* the displaced one is answered */
    cluster_destroy(f.c);
}

/* The status of a push of one or two items of slice 0. */
static enum dt_status
push_items(struct fixture *f, struct worker_at *w, uint32_t n_items)
{
    static const float g[2] = {1, 1}, *const frames[2] = {g, g};
    struct dt_data d = {.counter = ++w->counter, .weight = 1, .count = 1, .n_items = n_items};
    static const uint32_t n[2] = {2, 2};
    struct answer *answer =
        cluster_take(f->c, worker_data(f->c, w, f->homes[0], DT_OP_PUSH, &d, frames, n));
    enum dt_status status = answer ? answer->head.status : DT_E_TIMEOUT;

    answer_free(answer);
    return status;
}

Test(async, a_push_names_a_slice_once)
{
    struct fixture f;

    start(&f, -1);
    cr_assert_eq(push_items(&f, &f.a, 2), DT_R_MALFORMED);
    cr_assert_eq(value(&f), 10, "nothing changed");
    cr_assert_eq(push_items(&f, &f.a, 1), DT_OK);
    cr_assert_eq(value(&f), 9);
    cluster_destroy(f.c);
}

Test(async, a_life_that_has_left_changes_nothing)
{
    struct fixture f;
    uint64_t out, stop;
    enum dt_status status;

    start(&f, -1);
    cr_assert_eq(worker_step_op(f.c, &f.b, DT_OP_LEAVE, 0, &out), DT_OK);
    cr_assert_eq(push_items(&f, &f.b, 1), DT_R_LEFT);
    cr_assert_eq(worker_step_op(f.c, &f.b, DT_OP_CLOCK, 9, NULL), DT_R_LEFT);
    cr_assert_eq(worker_step_op(f.c, &f.b, DT_OP_WAIT_STEP, 9, NULL), DT_R_LEFT);
    cr_assert_eq(worker_init_done(f.c, &f.b, NULL, 0, false, &status), 0);
    cr_assert_eq(status, DT_R_LEFT, "no grant for one that has gone");
    cr_assert_eq(value(&f), 10);
    worker_at_init(&f.b, 1); /* a new process of that rank takes part */
    worker_hello_all(f.c, &f.b, "job", &f.params);
    cr_assert_eq(push_items(&f, &f.b, 1), DT_OK);
    cr_assert_eq(value(&f), 9);
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_CLOCK, 1, &stop), DT_OK);
    cluster_destroy(f.c);
}

Test(async, a_refused_hello_with_fresh_leaves_the_old_job_alone)
{
    struct fixture f;
    struct worker_at again;
    struct dt_hello_reply reply;
    struct dt_job_params wrong;
    uint64_t out;

    start(&f, -1);
    cr_assert_eq(push_items(&f, &f.a, 1), DT_OK);
    cr_assert_eq(worker_step_op(f.c, &f.a, DT_OP_LEAVE, 0, &out), DT_OK);
    cr_assert_eq(worker_step_op(f.c, &f.b, DT_OP_LEAVE, 0, &out), DT_OK);
    wrong = f.params;
    wrong.consistency = DT_SSP;
    wrong.aggregate = 1;
    worker_at_init(&again, 0);
    cr_assert_eq(worker_hello(f.c, &again, 0, "job", &wrong, true, &reply), DT_R_BAD_VALUE);
    cr_assert_eq(value(&f), 9, "its values are there");
    cluster_destroy(f.c);
}
