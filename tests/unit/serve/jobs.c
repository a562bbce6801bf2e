/*
 * jobs.c - lives of jobs and workers through the real dispatch: HELLO, leases, grants, parking,
 * completion, stop. One scenario a test; time and transport are the test's.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "psd/serve/shard.h"

TestSuite(jobs, .timeout = 80);

/* One of `n` elements, as cluster_start_job declares the first. */
static struct dt_declaration
one_variable(uint64_t n, float lr)
{
    struct dt_declaration d;

    memset(&d, 0, sizeof(d));
    strcpy(d.name, "v0");
    d.n_dims = 1;
    d.shape[0] = n;
    strcpy(d.optimizer, "sgd");
    d.n_params = 1;
    strcpy(d.params[0].name, "lr");
    d.params[0].value = lr;
    strcpy(d.init, "zeros");
    return d;
}

static struct dt_job_params
params_for(uint32_t workers)
{
    struct dt_job_params p;

    dt_job_params_default(&p);
    p.workers = workers;
    p.lease_ms = 1000;
    return p;
}

/* One shard that a job may fill with 1 MiB. */
static struct cluster *
create_small(uint64_t window_bytes)
{
    struct serve_config config = cluster_config(1);

    config.window_bytes = window_bytes;
    config.memory_quota = 1 << 20;
    return cluster_create_with(&config);
}

/* Variables of one element, all 0, at rate 1. */
static void
start_job(struct cluster *c, struct worker_at *w, uint32_t rank, const struct dt_job_params *p,
          uint32_t n_variables, uint8_t *homes)
{
    worker_at_init(w, rank);
    cluster_start_job(c, w, "job", p, n_variables, 1, 1, 0, homes);
}

static enum dt_status
hello0(struct cluster *c, struct worker_at *w, const struct dt_job_params *p)
{
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    enum dt_status status = worker_hello(c, w, 0, "job", p, false, reply);

    free(reply);
    return status;
}

static uint64_t
push_pull(struct cluster *c, struct worker_at *w, uint32_t shard, uint32_t variable,
          uint64_t version, const float *g, uint32_t n)
{
    struct dt_data d = {.counter = ++w->counter, .weight = g ? 10 : 0, .count = g ? 1 : 0};
    const float *frames[1] = {g};

    d.n_items = 1;
    d.items[0].variable = variable;
    d.items[0].version = version;
    d.items[0].want = version + 1;
    return worker_data(c, w, shard, DT_OP_PUSHPULL, &d, g ? frames : NULL, &n);
}

static void
keep_alive(struct cluster *c, struct worker_at *w)
{
    struct dt_buffer header = {0};
    uint64_t id = ++c->next_request;

    dt_heartbeat_encode(&header, id, w->sessions[0]);
    cluster_send(c, 0, PEER_LOCAL, &w->routes[0], &header, NULL, 0);
    answer_free(cluster_take(c, id));
}

/* Time passes for the job; these workers (b may be NULL) send heartbeats, the others are silent. */
static void
live_on(struct cluster *c, struct worker_at *a, struct worker_at *b, int64_t ms)
{
    for (; ms > 0; ms -= 50) {
        keep_alive(c, a);
        if (b)
            keep_alive(c, b);
        cluster_tick(c, 50);
    }
}

static enum dt_status
final_status(struct cluster *c, uint64_t id)
{
    enum dt_status status = DT_E_TIMEOUT;
    struct answer *a;

    while ((a = cluster_take(c, id)) != NULL) {
        status = a->head.status;
        answer_free(a);
    }
    return status;
}

Test(jobs, two_workers_average_and_the_parked_pull_is_the_barrier)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct worker_at a, b;
    struct dt_data_reply reply;
    struct answer *answer;
    uint8_t homes[2];
    float ga[2] = {1, 2}, gb[2] = {3, 6};
    uint64_t ra, rb;

    worker_at_init(&a, 0);
    worker_at_init(&b, 1);
    cluster_start_job(c, &a, "job", &p, 2, 2, .5f, 1, homes);
    cluster_start_job(c, &b, "job", &p, 2, 2, .5f, 1, homes);
    cr_assert_neq(homes[0], homes[1], "two equal variables live on two shards");
    ra = push_pull(c, &a, homes[1], 1, 0, ga, 2);
    answer = cluster_take(c, ra);
    cr_assert_eq(answer->head.status, DT_PARKED);
    answer_free(answer);
    rb = push_pull(c, &b, homes[1], 1, 0, gb, 2);
    answer = cluster_take(c, rb);
    cr_assert_eq(answer->head.status, DT_OK);
    answer_free(answer);
    answer = cluster_take(c, ra);
    cr_assert_eq(answer->head.status, DT_OK);
    cr_assert_eq(dt_data_reply_decode(&answer->head, &reply), DT_OK);
    cr_assert_eq(reply.items[0].fate, DT_FATE_ACCUMULATED);
    cr_assert_eq(reply.items[0].version, 1);
    cr_assert_float_eq(answer->frames[0][0], 1 - .5 * 2, 1e-6);
    cr_assert_float_eq(answer->frames[0][1], 1 - .5 * 4, 1e-6);
    answer_free(answer);
    cluster_destroy(c);
}

Test(jobs, a_lost_worker_is_struck_and_the_round_closes)
{
    struct cluster *c = cluster_create(3);
    struct dt_job_params p = params_for(2);
    struct worker_at a, b;
    uint8_t homes[3];
    float g[1] = {1};
    uint64_t id;

    start_job(c, &a, 0, &p, 3, homes);
    start_job(c, &b, 1, &p, 3, homes);
    id = push_pull(c, &a, homes[2], 2, 0, g, 1);
    live_on(c, &a, NULL, 1500);
    cr_assert_eq(final_status(c, id), DT_OK, "answered when rank 1's lease was over");
    id = push_pull(c, &b, homes[2], 2, 0, g, 1);
    cr_assert_eq(final_status(c, id), DT_R_HELLO_REQUIRED, "its old session changes nothing");
    cluster_destroy(c);
}

Test(jobs, time_in_which_psd_does_not_turn_does_not_run)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(1);
    struct outbox out;
    struct worker_at a;
    uint8_t homes[1];

    start_job(c, &a, 0, &p, 1, homes);
    c->now += 60000;
    outbox_init(&out);
    shard_tick(c->shards[0], c->now, &out);
    outbox_deinit(&out);
    cr_assert_eq(worker_step_op(c, &a, DT_OP_CLOCK, 0, NULL), DT_OK);
    cluster_destroy(c);
}

Test(jobs, on_loss_fail_ends_all_waits_with_the_reason)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct worker_at a, b;
    struct answer *answer;
    uint8_t homes[1];
    float g[1] = {1};
    uint64_t id;

    p.on_loss = DT_ON_LOSS_FAIL;
    start_job(c, &a, 0, &p, 1, homes);
    start_job(c, &b, 1, &p, 1, homes);
    id = push_pull(c, &a, homes[0], 0, 0, g, 1);
    answer_free(cluster_take(c, id)); /* PARKED */
    live_on(c, &a, NULL, 1500);
    answer = cluster_take(c, id);
    cr_assert_not_null(answer);
    cr_assert_eq(answer->head.status, DT_R_JOB_FAILED);
    cr_assert_not_null(strstr(answer->head.text, "rank 1"), "%s", answer->head.text);
    answer_free(answer);
    cluster_destroy(c);
}

Test(jobs, missing_at_the_start_is_struck_after_the_start_timeout)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(3);
    struct worker_at a, late;
    uint8_t homes[1];
    float g[1] = {1};
    uint64_t id;

    p.start_timeout_ms = 500;
    worker_at_init(&a, 1);
    worker_at_init(&late, 0);
    cluster_start_job(c, &a, "job", &p, 1, 1, 1, 0, homes);
    id = push_pull(c, &a, 0, 0, 0, g, 1);
    live_on(c, &a, NULL, 750);
    cr_assert_eq(final_status(c, id), DT_OK);
    cr_assert_eq(hello0(c, &late, &p), DT_OK);
    cr_assert(late.must_join, "who missed the start joins late");
    cluster_destroy(c);
}

Test(jobs, one_rank_one_process)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(1);
    struct worker_at a, twin;

    worker_at_init(&a, 0);
    worker_at_init(&twin, 0);
    cr_assert_eq(hello0(c, &a, &p), DT_OK);
    cr_assert_eq(hello0(c, &twin, &p), DT_R_RANK_TAKEN);
    cluster_tick(c, 1500);
    cr_assert_eq(hello0(c, &twin, &p), DT_OK, "after the lease the rank is free");
    cr_assert(twin.must_join);
    cluster_destroy(c);
}

Test(jobs, other_parameters_are_refused_with_both_values)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(2), q = params_for(3);
    struct worker_at a, b;

    worker_at_init(&a, 0);
    worker_at_init(&b, 1);
    cr_assert_eq(hello0(c, &a, &p), DT_OK);
    cr_assert_eq(hello0(c, &b, &q), DT_R_MISMATCH);
    cluster_destroy(c);
}

Test(jobs, the_init_grant_passes_on_when_its_holder_is_lost)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct dt_declaration d = one_variable(1, 0);
    struct worker_at a, b;
    enum dt_status status;
    struct answer *granted = NULL;
    uint32_t k;

    worker_at_init(&a, 0);
    worker_at_init(&b, 1);
    worker_hello_all(c, &a, "job", &p);
    worker_hello_all(c, &b, "job", &p);
    cr_assert_eq(worker_declare(c, &a, &d, 1), DT_OK);
    cr_assert_eq(worker_declare(c, &b, &d, 1), DT_OK);
    cr_assert_eq(worker_init_done(c, &a, &d, 1, false, &status), DT_INIT_GRANTED);
    cr_assert_eq(worker_init_done(c, &b, &d, 1, false, &status), 0);
    cr_assert_eq(status, DT_PARKED);
    cr_assert_eq(worker_init_done(c, &a, &d, 1, true, &status), 0, "no values were sent");
    cr_assert_eq(status, DT_R_BAD_VALUE);
    live_on(c, &b, NULL, 1500);
    for (k = 0; k < c->n_answers; k++) {
        if (c->answers[k]->head.op == (DT_OP_INIT_DONE | DT_REPLY_BIT))
            granted = c->answers[k];
    }
    cr_assert_not_null(granted, "rank 1 is told");
    cr_assert_eq(granted->head.status, DT_OK);
    cluster_destroy(c);
}

Test(jobs, a_complete_job_is_read_only_until_fresh)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(1);
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    struct worker_at a, b;
    uint8_t homes[1];

    worker_at_init(&a, 0);
    worker_at_init(&b, 0);
    cluster_start_job(c, &a, "job", &p, 1, 1, 1, 0, homes);
    cr_assert_eq(shard_once_state(c->shards[0], c->now), ONCE_RUNNING);
    cr_assert_eq(worker_step_op(c, &a, DT_OP_LEAVE, DT_NO_VERSION, NULL), DT_OK);
    cr_assert_eq(shard_once_state(c->shards[0], c->now), ONCE_COMPLETE);
    cr_assert_eq(hello0(c, &a, &p), DT_R_LEFT, "the lost reply of LEAVE");
    cr_assert_eq(hello0(c, &b, &p), DT_R_JOB_COMPLETE);
    cr_assert_eq(worker_hello(c, &b, 0, "job", &p, true, reply), DT_OK);
    cr_assert(!reply->must_join && !reply->initialised);
    free(reply);
    cluster_destroy(c);
}

Test(jobs, a_worker_of_a_replaced_job_is_not_let_into_the_new_one)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    struct worker_at a, b, fresh;
    uint8_t homes[1];

    worker_at_init(&a, 0);
    worker_at_init(&b, 1);
    worker_at_init(&fresh, 0);
    cluster_start_job(c, &a, "job", &p, 1, 1, 1, 0, homes);
    worker_hello_all(c, &b, "job", &p);
    cluster_tick(c, 2000); /* both lose their leases */
    cr_assert_eq(worker_hello(c, &fresh, 0, "job", &p, true, reply), DT_OK);
    cr_assert_eq(hello0(c, &b, &p), DT_R_NO_JOB, "its rank is free in the new job");
    cr_assert_eq(hello0(c, &a, &p), DT_R_NO_JOB);
    worker_at_init(&b, 1);
    cr_assert_eq(hello0(c, &b, &p), DT_OK, "a new process may have the rank at once");
    free(reply);
    cluster_destroy(c);
}

Test(jobs, suspended_when_all_are_lost_and_resumed_by_hello)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(1);
    struct worker_at a;
    struct dt_data_reply reply;
    struct answer *answer;
    uint8_t homes[1];
    uint64_t first, id;
    float g[1] = {1};
    struct dt_data d = {.n_items = 1};

    worker_at_init(&a, 0);
    cluster_start_job(c, &a, "job", &p, 1, 1, 1, 5, homes);
    id = push_pull(c, &a, homes[0], 0, 0, g, 1);
    cr_assert_eq(final_status(c, id), DT_OK);
    cluster_tick(c, 2000);
    worker_new_routes(&a);
    worker_hello_all(c, &a, "job", &p);
    cr_assert(a.must_join);
    cr_assert_eq(worker_step_op(c, &a, DT_OP_JOIN, 0, &first), DT_OK);
    cr_assert_eq(first, 3, "highest step seen + 2");
    d.items[0].version = DT_NO_VERSION;
    d.items[0].want = first;
    answer = cluster_take(c, worker_data(c, &a, homes[0], DT_OP_PULL, &d, NULL, NULL));
    cr_assert_eq(answer->head.status, DT_OK, "rounds that no rank counts close at once");
    cr_assert_eq(dt_data_reply_decode(&answer->head, &reply), DT_OK);
    cr_assert_eq(reply.items[0].version, 3);
    cr_assert_float_eq(answer->frames[0][0], 4, 1e-6, "the values stayed");
    answer_free(answer);
    cluster_destroy(c);
}

Test(jobs, a_step_in_which_all_abstain_touches_nothing)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(1);
    struct worker_at a;
    struct answer *answer;
    uint8_t homes[1];

    worker_at_init(&a, 0);
    cluster_start_job(c, &a, "job", &p, 1, 3, 1, 7, homes);
    answer = cluster_take(c, push_pull(c, &a, 0, 0, 0, NULL, 3));
    cr_assert_eq(answer->head.status, DT_OK);
    cr_assert_eq(answer->frames[0][2], 7);
    answer_free(answer);
    cluster_destroy(c);
}

Test(jobs, a_last_step_far_ahead_does_not_run_away)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct worker_at a, b;
    uint8_t homes[2];
    uint64_t first;

    worker_at_init(&a, 0);
    worker_at_init(&b, 5);
    cluster_start_job(c, &a, "job", &p, 2, 1, 1, 0, homes);
    worker_hello_all(c, &b, "job", &p);
    cr_assert_eq(worker_step_op(c, &b, DT_OP_JOIN, UINT64_MAX / 2, &first), DT_OK);
    cr_assert_eq(worker_step_op(c, &a, DT_OP_LEAVE, UINT64_MAX - 1, NULL), DT_OK);
    cr_assert_eq(worker_step_op(c, &b, DT_OP_LEAVE, UINT64_MAX - 1, NULL), DT_OK);
    cluster_destroy(c);
}

Test(jobs, nan_is_refused_whole_and_too_many_stop_the_worker)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(1);
    struct worker_at a;
    uint8_t homes[1];
    float bad[2] = {1, NAN}, good[2] = {1, 1};

    p.max_bad = 2;
    worker_at_init(&a, 0);
    cluster_start_job(c, &a, "job", &p, 1, 2, 1, 0, homes);
    cr_assert_eq(final_status(c, push_pull(c, &a, 0, 0, 0, bad, 2)), DT_R_NOT_FINITE);
    cr_assert_eq(final_status(c, push_pull(c, &a, 0, 0, 0, good, 2)), DT_OK);
    cr_assert_eq(final_status(c, push_pull(c, &a, 0, 0, 1, bad, 2)), DT_R_NOT_FINITE);
    cr_assert_eq(final_status(c, push_pull(c, &a, 0, 0, 1, bad, 2)), DT_R_TOO_MANY_BAD);
    cluster_destroy(c);
}

Test(jobs, the_memory_quota_is_checked_before_anything_is_allocated)
{
    struct cluster *c = create_small(1 << 20);
    struct dt_declaration *d = calloc(DT_MAX_VARIABLES, sizeof(*d));
    struct dt_job_params p = params_for(1);
    struct worker_at a;
    uint32_t i;

    for (i = 0; i < DT_MAX_VARIABLES; i++) { /* the most that can be declared: 16 PiB */
        d[i] = one_variable(1ull << 40, 0);
        snprintf(d[i].name, sizeof(d[i].name), "big%u", i);
    }
    worker_at_init(&a, 0);
    worker_hello_all(c, &a, "job", &p);
    cr_assert_eq(worker_declare(c, &a, d, DT_MAX_VARIABLES), DT_R_QUOTA);
    d[0].shape[0] = 1u << 20;
    cr_assert_eq(worker_declare(c, &a, d, 1), DT_R_QUOTA);
    d[0].shape[0] = 4;
    cr_assert_eq(worker_declare(c, &a, d, 1), DT_OK);
    free(d);
    cluster_destroy(c);
}

Test(jobs, round_timeout_names_a_rank_that_hangs_though_it_heartbeats)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct worker_at a, b;
    uint8_t homes[2];
    float g[1] = {1};
    uint64_t id;

    p.round_timeout_ms = 300;
    start_job(c, &a, 0, &p, 2, homes);
    start_job(c, &b, 1, &p, 2, homes);
    id = push_pull(c, &a, homes[1], 1, 0, g, 1);
    live_on(c, &a, &b, 500);
    cr_assert_eq(final_status(c, id), DT_OK);
    cr_assert_eq(worker_step_op(c, &b, DT_OP_CLOCK, 0, NULL), DT_R_HELLO_REQUIRED);
    cluster_destroy(c);
}

Test(jobs, stop_answers_what_is_parked_and_says_goodbye)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(2);
    struct dt_buffer header = {0};
    struct outbox out;
    struct worker_at a;
    struct reply *r;
    uint8_t homes[1];
    float g[1] = {1};
    unsigned n_goodbye = 0, n_down = 0;

    start_job(c, &a, 0, &p, 1, homes);
    push_pull(c, &a, 0, 0, 0, g, 1);
    outbox_init(&out);
    shard_stop(c->shards[0], c->now, &out);
    while ((r = outbox_take_reply(&out)) != NULL) {
        struct dt_head head;

        cr_assert_eq(dt_head_decode(&head, r->header.data, r->header.len), DT_OK);
        cr_assert_eq(head.status, DT_R_GOING_DOWN);
        n_goodbye += head.op == (DT_OP_GOODBYE | DT_REPLY_BIT);
        n_down += head.op == (DT_OP_PUSHPULL | DT_REPLY_BIT);
        reply_destroy(r);
    }
    cr_assert_eq(n_goodbye, 1);
    cr_assert_eq(n_down, 1);
    cr_assert_eq(shard_n_unacknowledged(c->shards[0]), 1);
    dt_simple_encode(&header, DT_OP_GOODBYE, 0, a.sessions[0]);
    cluster_send(c, 0, PEER_LOCAL, &a.routes[0], &header, NULL, 0);
    cr_assert_eq(shard_n_unacknowledged(c->shards[0]), 0);
    cluster_destroy(c);
}

Test(jobs, status_tells_who_waits_for_whom)
{
    struct cluster *c = cluster_create(3);
    struct dt_job_params p = params_for(2);
    struct dt_buffer header = {0};
    struct worker_at a;
    struct answer *answer;
    struct dt_reader r;
    uint8_t homes[3];
    float g[1] = {1};

    start_job(c, &a, 0, &p, 3, homes);
    push_pull(c, &a, homes[2], 2, 0, g, 1);
    answer = cluster_status(c);
    dt_reader_init(&r, answer->body.data, answer->body.len);
    dt_read_skip(&r);
    cr_assert(!r.failed && r.left == 0, "one whole object");
    cr_assert_not_null(memmem(answer->body.data, answer->body.len, "waiting", 7));
    cr_assert_not_null(memmem(answer->body.data, answer->body.len, "v2", 2));
    answer_free(answer);
    dt_simple_encode(&header, DT_OP_ADMIN_STATUS, ++c->next_request, 0);
    cluster_send(c, 0, PEER_LOCAL, &a.routes[0], &header, NULL, 0);
    answer = cluster_take(c, c->next_request);
    cr_assert_eq(answer->head.status, DT_R_DENIED, "not for ordinary connections");
    answer_free(answer);
    cluster_destroy(c);
}

Test(jobs, a_job_that_never_got_variables_goes_when_it_is_abandoned)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2), other = params_for(3);
    struct worker_at a, b;

    worker_at_init(&a, 0);
    worker_at_init(&b, 0);
    cr_assert_eq(hello0(c, &a, &p), DT_OK);
    cluster_tick(c, 300000);
    cr_assert_eq(hello0(c, &b, &other), DT_R_MISMATCH, "still there after five minutes");
    cluster_tick(c, 400000);
    cr_assert_eq(hello0(c, &b, &other), DT_OK, "a new job of that name");
    cluster_destroy(c);
}

/* A peer that reads nothing: c->hold_replies keeps everything in the transport, up to the window. */
static uint64_t
pull_one(struct cluster *c, struct worker_at *w, uint64_t want)
{
    struct dt_data pull = {.n_items = 1};

    pull.items[0].version = DT_NO_VERSION;
    pull.items[0].want = want;
    return worker_data(c, w, 0, DT_OP_PULL, &pull, NULL, NULL);
}

static void
let_go_of_held(struct cluster *c)
{
    uint32_t i;

    c->hold_replies = false;
    for (i = 0; i < c->n_held; i++)
        cluster_keep(c, c->held[i]);
    c->n_held = 0;
}

/* Found by the random orders: woken replies that wait for room are no fault of the peer. */
Test(jobs, queued_woken_replies_do_not_count_against_the_window)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(2);
    struct worker_at a, b;
    uint8_t homes[40];
    float g[1] = {1};
    uint64_t ids[40], id;
    uint32_t i;

    p.lease_ms = 3600000;
    start_job(c, &a, 0, &p, 40, homes);
    start_job(c, &b, 1, &p, 40, homes);
    for (i = 0; i < 40; i++)
        ids[i] = push_pull(c, &a, 0, i, 0, g, 1);
    c->hold_replies = true; /* the transport lets go of nothing */
    for (i = 0; i < 40; i++) {
        struct dt_data d = {.counter = i + 1, .weight = 1, .count = 1, .n_items = 1};
        const float *frame = g;
        uint32_t n = 1;

        d.items[0].variable = i;
        worker_data(c, &b, 0, DT_OP_PUSH, &d, &frame, &n);
    }
    id = pull_one(c, &a, 0);
    let_go_of_held(c);
    cluster_tick(c, 500);
    for (i = 0; i < 40; i++)
        cr_assert_eq(final_status(c, ids[i]), DT_OK, "slice %u", i);
    cr_assert_eq(final_status(c, id), DT_OK, "an ordinary pull behind them");
    cluster_destroy(c);
}

static void
start_reader(struct cluster *c, struct worker_at *a, struct worker_at *reader)
{
    struct dt_job_params p = params_for(1);
    uint8_t homes[1];

    p.lease_ms = 3600000;
    worker_at_init(a, 0);
    worker_at_init(reader, DT_NO_RANK);
    cluster_start_job(c, a, "job", &p, 1, 1, 1, 0, homes);
    cr_assert_eq(hello0(c, reader, &p), DT_OK);
    c->hold_replies = true;
}

Test(jobs, woken_replies_that_a_reader_does_not_take_are_bounded)
{
    struct cluster *c = cluster_create(1);
    struct worker_at a, reader;
    uint64_t ids[100], step;
    uint32_t refused = 0;
    float g[1] = {1};

    start_reader(c, &a, &reader);
    for (step = 0; step < 100; step++) {
        ids[step] = pull_one(c, &reader, step + 1);
        push_pull(c, &a, 0, 0, step, g, 1);
    }
    let_go_of_held(c);
    cluster_tick(c, 500);
    for (step = 0; step < 100; step++)
        refused += final_status(c, ids[step]) == DT_R_QUOTA;
    /* the window, and twice the slices and a message of them */
    cr_assert_eq(refused, 100 - 8 - (2 + DT_MAX_ITEMS), "%u refused", refused);
    cr_assert_eq(final_status(c, pull_one(c, &reader, 0)), DT_OK, "the session goes on");
    cluster_destroy(c);
}

static uint32_t
held_values(const struct cluster *c)
{
    uint32_t i, n = 0;

    for (i = 0; i < c->n_held; i++)
        n += c->held[i]->n_payload > 0;
    return n;
}

Test(jobs, what_was_not_taken_counts_on_after_another_hello)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p = params_for(1);
    struct worker_at a, reader;
    uint32_t i;

    start_reader(c, &a, &reader);
    for (i = 0; i < 20; i++) {
        pull_one(c, &reader, 0);
        c->hold_replies = false;
        p.lease_ms = 3600000;
        cr_assert_eq(hello0(c, &reader, &p), DT_OK);
        c->hold_replies = true;
    }
    cr_assert_eq(held_values(c), 8, "%u messages are under way", held_values(c));
    let_go_of_held(c);
    cluster_tick(c, 500);
    cr_assert_eq(final_status(c, pull_one(c, &reader, 0)), DT_OK);
    cluster_destroy(c);
}

/* As the daemon does when libzmq has let go of a reply: no tick is needed. */
static void
flush(struct cluster *c)
{
    struct outbox out;
    struct reply *r;

    outbox_init(&out);
    shard_flush(c->shards[0], &out);
    while ((r = outbox_take_reply(&out)) != NULL)
        cluster_keep(c, r);
    outbox_deinit(&out);
}

Test(jobs, replies_that_wait_for_room_go_out_when_there_is_some)
{
    struct cluster *c = cluster_create(1);
    struct worker_at a, reader;
    uint64_t ids[12];
    uint32_t i;

    start_reader(c, &a, &reader);
    for (i = 0; i < 12; i++)
        ids[i] = pull_one(c, &reader, 0);
    flush(c);
    for (i = 0; i < 12; i++)
        cr_assert_eq(cluster_count(c, ids[i]), 0, "there is no room yet");
    cr_assert_eq(held_values(c), 8);
    let_go_of_held(c);
    flush(c);
    for (i = 0; i < 12; i++)
        cr_assert_eq(final_status(c, ids[i]), DT_OK, "pull %u", i);
    flush(c);
    cr_assert_eq(c->n_answers, 0, "nothing is left to go out");
    cluster_destroy(c);
}

/* One that has ended is no longer looked at. */
Test(jobs, a_session_that_ends_takes_its_waiting_replies_along)
{
    struct cluster *c = cluster_create(1);
    struct worker_at a, reader;
    uint64_t ids[12];
    uint32_t i;

    start_reader(c, &a, &reader);
    for (i = 0; i < 12; i++)
        ids[i] = pull_one(c, &reader, 0);
    c->hold_replies = false;
    for (i = 0; i < 9; i++) /* over its window */
        pull_one(c, &reader, 0);
    let_go_of_held(c);
    flush(c);
    for (i = 8; i < 12; i++)
        cr_assert_eq(cluster_count(c, ids[i]), 0, "pull %u", i);
    cluster_destroy(c);
}

Test(jobs, a_peer_with_more_bytes_waiting_than_its_window_loses_its_session)
{
    struct cluster *c = create_small(8);
    struct worker_at a, reader;
    uint64_t id;
    uint32_t i;

    start_reader(c, &a, &reader);
    for (i = 0; i < 4; i++) /* two under way, two wait: no more than a window of 8 bytes each */
        pull_one(c, &reader, 0);
    cr_assert_eq(held_values(c), 2);
    pull_one(c, &reader, 0);
    let_go_of_held(c);
    id = pull_one(c, &reader, 0);
    cr_assert_eq(final_status(c, id), DT_R_HELLO_REQUIRED);
    cluster_destroy(c);
}

/* Its LEAVE must not take the rank out of the rounds: the right worker is still awaited. */
Test(jobs, who_declares_something_else_is_turned_away_and_counts_nowhere)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params p = params_for(2);
    struct dt_declaration other;
    struct worker_at a, wrong, right;
    enum dt_status status;
    uint8_t homes[1];
    float g[1] = {1};
    uint64_t id, step;

    worker_at_init(&a, 0);
    worker_at_init(&wrong, 1);
    worker_at_init(&right, 1);
    right.uuid[0]++;
    cluster_start_job(c, &a, "job", &p, 1, 1, 1, 0, homes);
    id = push_pull(c, &a, homes[0], 0, 0, g, 1);
    worker_hello_all(c, &wrong, "job", &p);
    cr_assert_eq(hello0(c, &right, &p), DT_R_RANK_TAKEN);
    other = one_variable(1, 0.5f);
    cr_assert_eq(worker_declare(c, &wrong, &other, 1), DT_R_MISMATCH);
    other = one_variable(1, 1);
    cr_assert_eq(worker_declare(c, &wrong, &other, 1), DT_R_MISMATCH, "once and for all");
    cr_assert_eq(worker_init_done(c, &wrong, &other, 1, false, &status), 0);
    cr_assert_eq(status, DT_R_MISMATCH);
    cr_assert_eq(worker_step_op(c, &wrong, DT_OP_LEAVE, DT_NO_VERSION, &step), DT_OK);
    cluster_settle(c);
    cr_assert_eq(final_status(c, id), DT_PARKED, "the round waits for rank 1");
    live_on(c, &a, NULL, 1500); /* past the lease of the one that was turned away */
    cr_assert_eq(final_status(c, id), DT_E_TIMEOUT, "and goes on waiting");
    cluster_start_job(c, &right, "job", &p, 1, 1, 1, 0, homes);
    cr_assert(!right.must_join);
    cr_assert_eq(final_status(c, push_pull(c, &right, homes[0], 0, 0, g, 1)), DT_OK);
    cr_assert_eq(final_status(c, id), DT_OK);
    cluster_destroy(c);
}
