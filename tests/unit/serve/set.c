/*
 * set.c - the operator's SET through the real dispatch: a rate that changes at one version on all shards, whatever
 * arrives meanwhile; staleness by the global step; what is refused.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "proto/wire/set.h"
#include "psd/store/setting.h"

TestSuite(set, .timeout = 80);

#define JOB "job"

struct fixture {
    struct cluster *c;
    struct dt_job_params params;
    struct worker_at a;
    uint8_t homes[2];
};

/* One worker, two variables of two elements on two shards, all 10, at rate 1. */
static void
start(struct fixture *f, uint32_t consistency, uint32_t locking, float lr)
{
    memset(f, 0, sizeof(*f));
    f->c = cluster_create(2);
    dt_job_params_default(&f->params);
    f->params.workers = 1;
    f->params.consistency = consistency;
    f->params.locking = locking;
    f->params.lease_ms = 3600000;
    worker_at_init(&f->a, 0);
    cluster_start_job(f->c, &f->a, JOB, &f->params, 2, 2, lr, 10, f->homes);
}

static struct dt_admin_set
lr_at(double value, uint64_t step)
{
    struct dt_admin_set m = {.job = JOB, .key = "lr", .value = value, .step = step};

    return m;
}

/* Sends it; mails between the shards stay where they are. */
static uint64_t
send_set(struct fixture *f, const struct dt_admin_set *m)
{
    struct dt_route admin = {.len = 1, .id = {'a'}};
    struct dt_buffer header = {0};
    uint64_t id = ++f->c->next_request;

    dt_admin_set_encode(&header, id, m);
    cluster_send(f->c, 0, PEER_ADMIN, &admin, &header, NULL, 0);
    return id;
}

/* The step that became effective. */
static uint64_t
taken(struct fixture *f, uint64_t request)
{
    struct answer *answer;
    uint64_t step;

    cluster_settle(f->c);
    answer = cluster_take(f->c, request);
    cr_assert_not_null(answer);
    cr_assert_eq(answer->head.status, DT_OK, "%s", answer->head.text);
    step = dt_head_u64(&answer->head, UINT64_MAX, UINT64_MAX - 1);
    answer_free(answer);
    return step;
}

static uint64_t
set(struct fixture *f, struct dt_admin_set m)
{
    return taken(f, send_set(f, &m));
}

static void
refused(struct fixture *f, struct dt_admin_set m, enum dt_status status, const char *text)
{
    struct answer *answer;
    uint64_t id = send_set(f, &m);

    cluster_settle(f->c);
    answer = cluster_take(f->c, id);
    cr_assert_not_null(answer);
    cr_expect_eq(answer->head.status, status, "%s", answer->head.text);
    cr_expect(strstr(answer->head.text, text), "'%s' does not say '%s'", answer->head.text, text);
    answer_free(answer);
}

/* A gradient of ones for variable `v` at `version`; its fate. Does not deliver mails. */
static enum dt_fate
push(struct fixture *f, uint32_t v, uint64_t version)
{
    struct dt_data d = {.counter = ++f->a.counter, .weight = 1, .count = 1, .n_items = 1};
    const float ones[2] = {1, 1}, *g = ones;
    struct dt_data_reply reply;
    struct answer *answer;
    uint32_t n = 2;

    d.items[0].variable = v;
    d.items[0].version = version;
    answer = cluster_take(f->c, worker_data(f->c, &f->a, f->homes[v], DT_OP_PUSH, &d, &g, &n));
    cr_assert_not_null(answer);
    cr_assert_eq(answer->head.status, DT_OK, "%s", answer->head.text);
    cr_assert_eq(dt_data_reply_decode(&answer->head, &reply), DT_OK);
    answer_free(answer);
    return (enum dt_fate)reply.items[0].fate;
}

static float
value(struct fixture *f, uint32_t v)
{
    struct dt_data d = {.n_items = 1};
    struct answer *answer;
    float x;

    d.items[0].variable = v;
    d.items[0].version = DT_NO_VERSION;
    answer = cluster_take(f->c, worker_data(f->c, &f->a, f->homes[v], DT_OP_PULL, &d, NULL, NULL));
    cr_assert_not_null(answer);
    cr_assert_eq(answer->n_frames, 1);
    x = answer->frames[0][1];
    answer_free(answer);
    return x;
}

static void
steps(struct fixture *f, uint64_t from, uint64_t to)
{
    for (; from < to; from++) {
        cr_assert_eq(push(f, 0, from), DT_FATE_ACCUMULATED);
        cr_assert_eq(push(f, 1, from), DT_FATE_ACCUMULATED);
        cluster_settle(f->c);
    }
}

Test(set, all_slices_change_at_the_named_version)
{
    struct fixture f;

    start(&f, DT_SYNC, DT_LOCK_SLICE, 1);
    cr_assert_neq(f.homes[0], f.homes[1]);
    steps(&f, 0, 1);
    cr_expect_eq(set(&f, lr_at(.5, 4)), 4);
    cr_expect_eq(set(&f, lr_at(.25, 6)), 6, "both remain");
    steps(&f, 1, 7);
    cr_expect_eq(value(&f, 0), 10 - 4 - 2 * .5f - .25f);
    cr_expect_eq(value(&f, 1), value(&f, 0));
    cluster_destroy(f.c);
}

Test(set, a_step_that_is_too_near_becomes_a_later_one)
{
    struct fixture f;

    start(&f, DT_SYNC, DT_LOCK_SLICE, 1);
    steps(&f, 0, 5);
    cr_expect_eq(set(&f, lr_at(.5, 5)), 7);
    cr_expect_eq(set(&f, lr_at(.5, DT_NO_VERSION)), 7);
    refused(&f, lr_at(.5, 4), DT_R_BAD_VALUE, "step 4 has passed: job job is at 5");
    steps(&f, 5, 9);
    cr_expect_eq(value(&f, 0), 10 - 7 - 2 * .5f);
    cluster_destroy(f.c);
}

/* Shard 1 goes on while shard 0's question is under way, past the chosen step: both then take a later one. */
Test(set, a_shard_that_is_past_it_makes_all_take_a_later_one)
{
    struct fixture f;
    struct dt_admin_set m = lr_at(.5, DT_NO_VERSION);
    uint32_t here, there, k;
    uint64_t id, at;

    start(&f, DT_SYNC, DT_LOCK_SLICE, 1);
    here = f.homes[0] == 0 ? 0 : 1;
    there = 1 - here;
    id = send_set(&f, &m); /* at 2 */
    for (k = 0; k < 3; k++)
        push(&f, there, k);
    for (k = 0; k < 3; k++)
        push(&f, here, k);
    cr_expect_eq(value(&f, here), 10 - 2, "its round of step 2 is kept open");
    at = taken(&f, id);
    cr_expect_eq(at, 5);
    cr_expect_eq(value(&f, here), 10 - 3, "and is closed when they have agreed");
    steps(&f, 3, 8);
    cr_expect_eq(value(&f, 0), 10 - 5 - 3 * .5f);
    cr_expect_eq(value(&f, 1), 10 - 5 - 3 * .5f);
    cluster_destroy(f.c);
}

/* The same in any order of mails and pushes: the two slices never differ in the number of steps at either rate. */
Test(set, whatever_the_order)
{
    unsigned seed;

    for (seed = 1; seed <= 60; seed++) {
        struct fixture f;
        struct dt_admin_set m = lr_at(.5, seed % 3 ? DT_NO_VERSION : 3);
        uint64_t at, id, version[2] = {0, 0};
        unsigned k, state = seed;

        start(&f, DT_SYNC, DT_LOCK_SLICE, 1);
        id = send_set(&f, &m);
        for (k = 0; k < 14; k++) {
            uint32_t v = (state = state * 1103515245u + 12345u) >> 16 & 1;

            if (state >> 17 & 3)
                push(&f, v, version[v]++);
            else
                cluster_deliver(f.c, state >> 20);
            if (version[v] > 0 && push(&f, v, version[v] - 1) == DT_FATE_DUPLICATE)
                version[v]--; /* held: the round of that step is still open */
        }
        at = taken(&f, id);
        for (k = 0; k < 2; k++) {
            uint64_t n;

            for (n = 0; n < 20; n++)
                push(&f, k, n);
            cr_expect_eq(value(&f, k), 10 - (float)at - (float)(20 - at) * .5f,
                         "seed %u, variable %u, at %u: %g", seed, k, (unsigned)at,
                         (double)value(&f, k));
        }
        cluster_destroy(f.c);
    }
}

Test(set, one_variable_alone)
{
    struct fixture f;
    struct dt_admin_set m = lr_at(0, 2);

    start(&f, DT_SYNC, DT_LOCK_SLICE, 1);
    strcpy(m.variable, "v1");
    cr_expect_eq(set(&f, m), 2);
    steps(&f, 0, 4);
    cr_expect_eq(value(&f, 0), 6);
    cr_expect_eq(value(&f, 1), 8);
    strcpy(m.variable, "v2");
    refused(&f, m, DT_R_NO_VARIABLE, "job job has no variable v2");
    cluster_destroy(f.c);
}

static void
clock_to(struct fixture *f, uint64_t step)
{
    uint64_t stop;

    cr_assert_eq(worker_step_op(f->c, &f->a, DT_OP_CLOCK, step, &stop), DT_OK);
}

Test(set, asynchronous_jobs_go_by_the_global_step)
{
    struct fixture f;

    start(&f, DT_ASYNC, DT_LOCK_SLICE, 1);
    cr_expect_eq(set(&f, lr_at(.5, 3)), 3);
    clock_to(&f, 2);
    push(&f, 0, 0);
    cr_expect_eq(value(&f, 0), 9);
    clock_to(&f, 3);
    push(&f, 0, 1);
    cr_expect_eq(value(&f, 0), 8.5f);
    cr_expect_eq(set(&f, lr_at(.25, DT_NO_VERSION)), 3, "at once");
    push(&f, 0, 2);
    cr_expect_eq(value(&f, 0), 8.25f);
    refused(&f, lr_at(1, 2), DT_R_BAD_VALUE, "step 2 has passed");
    cluster_destroy(f.c);
}

Test(set, locking_none_too)
{
    struct fixture f;

    start(&f, DT_ASYNC, DT_LOCK_NONE, 1);
    f.homes[0] = f.homes[1] = 0;
    cr_expect_eq(set(&f, lr_at(.5, DT_NO_VERSION)), 0);
    push(&f, 1, 0);
    cr_expect_eq(value(&f, 1), 9.5f);
    cluster_destroy(f.c);
}

Test(set, the_bound_on_staleness)
{
    struct fixture f;
    struct dt_admin_set m = {.job = JOB, .key = "max_staleness", .value = 1, .step = DT_NO_VERSION};

    start(&f, DT_ASYNC, DT_LOCK_SLICE, 1);
    push(&f, 0, 0);
    push(&f, 0, 1);
    cr_expect_eq(push(&f, 0, 0), DT_FATE_APPLIED, "no bound");
    set(&f, m);
    cr_expect_eq(push(&f, 0, 1), DT_FATE_STALE);
    cr_expect_eq(push(&f, 0, 2), DT_FATE_APPLIED);
    m.value = -1;
    set(&f, m);
    cr_expect_eq(push(&f, 0, 0), DT_FATE_APPLIED);
    m.value = 1.5;
    refused(&f, m, DT_R_BAD_VALUE, "must be a whole number");
    m.value = -2;
    refused(&f, m, DT_R_BAD_VALUE, "must be a whole number");
    m.value = 1e300;
    refused(&f, m, DT_R_BAD_VALUE, "must be a whole number");
    cluster_destroy(f.c);
}

Test(set, the_bound_of_ssp)
{
    struct dt_admin_set m = {
        .job = JOB, .key = "staleness_bound", .value = 1, .step = DT_NO_VERSION};
    struct fixture f;

    start(&f, DT_SSP, DT_LOCK_SLICE, 1);
    cr_expect_eq(set(&f, m), 0);
    m.value = 0.5;
    refused(&f, m, DT_R_BAD_VALUE, "must be a whole number");
    m.value = -1;
    refused(&f, m, DT_R_BAD_VALUE, "must be a whole number");
    m.value = 2;
    m.step = 5;
    refused(&f, m, DT_R_BAD_VALUE, "counts at once");
    cluster_destroy(f.c);
    start(&f, DT_ASYNC, DT_LOCK_SLICE, 1);
    m.step = DT_NO_VERSION;
    refused(&f, m, DT_R_BAD_VALUE, "is not ssp");
    cluster_destroy(f.c);
}

/* What was declared, and the job's parameters, are compared as they were. */
Test(set, who_comes_later_declares_what_was_declared)
{
    struct fixture f;
    struct worker_at late;

    start(&f, DT_ASYNC, DT_LOCK_SLICE, 1);
    set(&f, lr_at(.5, DT_NO_VERSION));
    set(&f, (struct dt_admin_set){.job = JOB, .key = "max_staleness", .value = 3, .step = 9});
    worker_at_init(&late, 1);
    cluster_start_job(f.c, &late, JOB, &f.params, 2, 2, 1, 10, f.homes);
    cluster_destroy(f.c);
}

Test(set, refusals)
{
    struct fixture f;
    struct dt_admin_set m = lr_at(1, DT_NO_VERSION);
    unsigned i;

    start(&f, DT_SYNC, DT_LOCK_SLICE, 1);
    refused(&f, lr_at(-1, 5), DT_R_BAD_VALUE, "variable v0: sgd: lr is -1");
    refused(&f, lr_at(1e39, 5), DT_R_BAD_VALUE, "finite");
    refused(&f, lr_at(1, UINT64_MAX - 1), DT_R_BAD_VALUE, "not a step");
    strcpy(m.key, "momentum");
    refused(&f, m, DT_R_BAD_VALUE, "known: lr, max_staleness, staleness_bound");
    strcpy(m.key, "max_staleness");
    refused(&f, m, DT_R_BAD_VALUE, "is not asynchronous");
    strcpy(m.job, "other");
    refused(&f, m, DT_R_NO_JOB, "there is no job other");
    for (i = 0; i < SETTING_MAX; i++)
        cr_expect_eq(set(&f, lr_at(i, 10 + i)), 10 + i, "many may wait");
    refused(&f, lr_at(i, 10 + i), DT_R_BAD_VALUE, "are to come: wait");
    cluster_destroy(f.c);
    start(&f, DT_ASYNC, DT_LOCK_SLICE, -1);
    refused(&f, lr_at(1, DT_NO_VERSION), DT_R_BAD_VALUE, "no variable with a rate");
    m = lr_at(1, DT_NO_VERSION);
    strcpy(m.variable, "v0");
    refused(&f, m, DT_R_BAD_VALUE, "variable v0: add-damped: has no lr");
    cluster_destroy(f.c);
}
