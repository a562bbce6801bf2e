/*
 * steps.c - declare, init, pull, push, step, wait, cancel, leave against the scripted psd.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "proto/base/clock.h"
#include "proto/wire/op.h"

TestSuite(steps, .timeout = 120, .fini = fake_no_leaks);

#define BIG 600000 /* three slices */

struct set {
    float *v[2];
    float *g[2];
    uint64_t n;
};

static struct set
set_create(uint64_t n)
{
    struct set s = {{dtw_alloc(n), dtw_alloc(n)}, {dtw_alloc(n), dtw_alloc(n)}, n};
    uint64_t i;

    for (i = 0; i < n; i++) {
        s.g[0][i] = 0.25f;
        s.g[1][i] = 0.5f;
    }
    return s;
}

static void
set_destroy(struct set *s)
{
    dtw_free(s->v[0], s->n);
    dtw_free(s->v[1], s->n);
    dtw_free(s->g[0], s->n);
    dtw_free(s->g[1], s->n);
}

static const float *const *
gradients(const struct set *s)
{
    return (const float *const *)s->g;
}

static void
expect_values(const struct set *s, float a, float b)
{
    uint64_t i;

    for (i = 0; i < s->n; i++)
        cr_assert(fabsf(s->v[0][i] - a) < 1e-6f && fabsf(s->v[1][i] - b) < 1e-6f,
                  "element %llu: %g %g, expected %g %g", (unsigned long long)i, (double)s->v[0][i],
                  (double)s->v[1][i], (double)a, (double)b);
}

static void
pull(struct dtw_client *client, struct set *s, uint64_t want)
{
    struct dtw_handle *h;
    struct dtw_error err;

    cr_assert_eq(dtw_pull(client, s->v, want, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
}

static void
train_steps(uint32_t shards)
{
    struct fake *f = fake_start(shards, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_result result;
    struct dtw_error err;
    int i;

    pull(client, &s, 0);
    expect_values(&s, 1, 2);
    for (i = 1; i <= 4; i++) {
        cr_assert_eq(dtw_step(client, gradients(&s), s.v, 10, 1, &result, &err), DTW_OK, "%s",
                     err.text);
        cr_assert_eq(result.step, (uint64_t)i);
        cr_assert_eq(result.n_slices, 6);
        cr_assert_eq(result.accumulated + result.duplicate, 6);
        cr_assert_not(result.partial);
        expect_values(&s, 1 - 0.125f * (float)i, 2 - 0.25f * (float)i);
    }
    cr_assert_eq(dtw_worker_step(client), 4);
    cr_assert_eq(dtw_leave(client, 5000, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(f->left_at, 3);
    /* Else the machine was slow, and HELLO came once more. */
    if (fake_seen(f, DT_OP_HELLO) == shards)
        cr_assert_eq(f->resent, 0);
    cr_assert_eq(dtw_step(client, gradients(&s), s.v, 10, 1, &result, &err), DTW_CLOSED);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, train_over_one_shard)
{
    train_steps(1);
}

Test(steps, train_over_three_shards)
{
    train_steps(3);
}

Test(steps, two_ps_tasks_place_by_bytes)
{
    struct fake *f[2] = {fake_start(2, NULL), fake_start(1, NULL)};
    struct dtw_client *client = fake_open(f, 2, 10000);
    uint64_t sizes[] = {100, 10, 20}, first;
    float v[3][100], g[3][100] = {{0}};
    float *values[] = {v[0], v[1], v[2]};
    const float *grads[] = {g[0], g[1], g[2]};
    struct dtw_handle *h;
    struct dtw_error err;
    uint64_t rounds;
    int i;

    for (i = 0; i < 3; i++) {
        struct dtw_variable var = {
            .name = (const char *[]){"a", "b", "c"}[i], .n_dims = 1, .shape = &sizes[i], .lr = 1};

        g[i][0] = 1;
        cr_assert_eq(dtw_declare(client, &var, NULL, &err), DTW_OK, "%s", err.text);
    }
    f[0]->must_join = true;
    f[0]->join_step = 5;
    f[1]->join_step = 9;
    fake_fence(f[0]);
    cr_assert_eq(dtw_init(client, fake_ones, NULL, &first, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_pull(client, values, 0, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 5000, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_step(client, grads, values, 1, 1, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert(v[0][0] == 0 && v[1][0] == 1 && v[2][0] == 2 && v[2][19] == 3);
    cr_assert(f[0]->variables[1].task == 1 && f[0]->variables[2].task == 1);
    cr_assert_eq(dtw_stats(client, "rounds", 5000, &rounds, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(rounds, 42);
    cr_assert_eq(dtw_stats(client, "nonsense", 5000, &rounds, &err), DTW_INVALID);
    cr_assert_eq(dtw_leave(client, 5000, &err), DTW_OK, "%s", err.text);
    cr_assert(f[0]->left_at == 0 && f[1]->left_at == 0);
    dtw_close(client);
    fake_stop(f[0]);
    fake_stop(f[1]);
}

Test(steps, late_joiner_agrees_with_all_ps_tasks)
{
    struct fake *f[2] = {fake_start(1, NULL), fake_start(1, NULL)};
    struct dtw_client *client;
    struct dtw_error err;
    uint64_t n = 4, first = 0;
    struct dtw_variable var = {.name = "a", .n_dims = 1, .shape = &n, .lr = 1};

    f[0]->must_join = f[1]->must_join = true;
    f[0]->join_step = 5;
    f[1]->join_step = 9;
    client = fake_open(f, 2, 10000);
    cr_assert_eq(dtw_declare(client, &var, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_init(client, fake_ones, NULL, &first, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(first, 9);
    cr_assert(f[0]->last_join == 9 && f[1]->last_join == 9);
    dtw_close(client);
    fake_stop(f[0]);
    fake_stop(f[1]);
}

Test(steps, declarations_are_checked)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_open(&f, 1, 10000);
    uint64_t shape[] = {3, 0}, huge[] = {1ull << 39, 4};
    struct dtw_error err;
    struct dtw_variable v = {.name = "a b", .n_dims = 1, .shape = shape};

    cr_assert_eq(dtw_declare(client, &v, NULL, &err), DTW_INVALID);
    v.name = "a";
    v.n_dims = 2;
    cr_assert_eq(dtw_declare(client, &v, NULL, &err), DTW_INVALID);
    v.shape = huge;
    cr_assert_eq(dtw_declare(client, &v, NULL, &err), DTW_INVALID);
    v.n_dims = 0;
    cr_assert_eq(dtw_init(client, fake_ones, NULL, NULL, &err), DTW_INVALID);
    cr_assert_eq(dtw_declare(client, &v, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_declare(client, &v, NULL, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "twice"));
    cr_assert_eq(dtw_push(client, NULL, 0, 0, &(struct dtw_handle *){NULL}, &err), DTW_INVALID);
    cr_assert_eq(dtw_init(client, fake_ones, NULL, NULL, &err), DTW_OK, "%s", err.text);
    v.name = "late";
    cr_assert_eq(dtw_declare(client, &v, NULL, &err), DTW_INVALID);
    cr_assert_eq(dtw_push(client, NULL, 0, 0, &(struct dtw_handle *){NULL}, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "pull"), "%s", err.text);
    dtw_close(client);
    fake_stop(f);
}

Test(steps, init_waits_for_the_grant_and_says_for_whom)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client;
    pthread_t thread;
    void *grant_later(void *);

    f->park_init = true;
    cr_assert_eq(pthread_create(&thread, NULL, grant_later, f), 0);
    client = fake_ready(f, 1, 5);
    pthread_join(thread, NULL);
    cr_assert(strstr(fake_log_text, "5 waiting for rank 1, 3 to give the initial values"), "%s",
              fake_log_text);
    cr_assert_eq(f->variables[0].values[4], 1.0f);
    dtw_close(client);
    fake_stop(f);
}

void *grant_later(void *arg);
void *
grant_later(void *arg)
{
    fake_wait_seen(arg, DT_OP_INIT_DONE, 1);
    dt_sleep_ms(500);
    fake_grant(arg);
    return NULL;
}

Test(steps, non_finite_gradients_are_not_sent)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_error err;

    pull(client, &s, 0);
    s.g[1][BIG - 1] = NAN;
    cr_assert_eq(dtw_step(client, gradients(&s), s.v, 1, 1, NULL, &err), DTW_NOT_FINITE);
    cr_assert(strstr(err.text, "w1"), "%s", err.text);
    cr_assert_eq(fake_seen(f, DT_OP_PUSHPULL), 0);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, abstaining_sends_no_payload)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_result result;
    struct dtw_error err;

    pull(client, &s, 0);
    cr_assert_eq(dtw_step(client, NULL, s.v, 1, 0, &result, &err), DTW_INVALID);
    cr_assert_eq(dtw_step(client, NULL, s.v, 0, 0, &result, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(result.step, 1);
    expect_values(&s, 1, 2);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, stale_slices_are_told)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_result result;
    struct dtw_error err;

    pull(client, &s, 0);
    fake_lock(f);
    f->variables[1].versions[2] = 5;
    fake_unlock(f);
    cr_assert_eq(dtw_step(client, gradients(&s), s.v, 1, 1, &result, &err), DTW_OK, "%s", err.text);
    cr_assert(result.accumulated == 5 && result.stale == 1 && result.partial);
    cr_assert_eq(result.step, 5);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, pending_then_complete_and_the_ranks_are_named)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_result result;
    struct dtw_error err;
    unsigned i;

    pull(client, &s, 0);
    fake_lock(f);
    f->park = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, gradients(&s), s.v, 1, 1, &h, &err), DTW_OK);
    cr_assert_eq(dtw_wait(h, 0, &result, &err), DTW_PENDING);
    for (i = 0; i < 50 && !strstr(fake_log_text, "waiting for rank"); i++)
        cr_assert_eq(dtw_wait(h, 400, &result, &err), DTW_PENDING);
    cr_assert(strstr(fake_log_text, "5 waiting for rank 1, 3 at step 1 ("), "%s", fake_log_text);
    fake_release(f);
    cr_assert_eq(dtw_wait(h, -1, &result, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(result.step, 1);
    expect_values(&s, 0.875f, 1.75f);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, the_background_thread_does_the_work_while_the_application_computes)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_error err;
    uint32_t beats;

    pull(client, &s, 0);
    cr_assert_eq(dtw_push_pull(client, gradients(&s), s.v, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_PUSHPULL, 2);
    beats = fake_seen(f, DT_OP_HEARTBEAT);
    dt_sleep_ms(1300);
    cr_assert_geq(fake_seen(f, DT_OP_HEARTBEAT), beats + 8); /* 2 shards, each 250 ms */
    cr_assert_leq(fake_seen(f, DT_OP_HEARTBEAT), beats + 14);
    cr_assert_eq(dtw_wait(h, 0, NULL, &err), DTW_OK, "%s", err.text);
    expect_values(&s, 0.875f, 1.75f);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, push_copy_frees_the_buffers_at_once)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_result result;
    struct dtw_error err;

    pull(client, &s, 0);
    cr_assert_eq(dtw_push_copy(client, gradients(&s), 1, 1, &h, &err), DTW_OK, "%s", err.text);
    memset(s.g[0], 0x7f, BIG * sizeof(float));
    memset(s.g[1], 0x7f, BIG * sizeof(float));
    cr_assert_eq(dtw_wait(h, 10000, &result, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(result.accumulated + result.duplicate, 6);
    pull(client, &s, 1);
    expect_values(&s, 0.875f, 1.75f);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

static void
never_over_the_window(uint32_t window, uint64_t bytes)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client;
    struct set s = set_create(4000000); /* 16 slices a variable */
    struct dtw_handle *h;
    struct dtw_error err;
    enum dtw_status status = DTW_PENDING;

    f->window = window;
    f->window_bytes = bytes;
    client = fake_ready(f, 2, 4000000);
    fake_lock(f);
    f->slow = true;
    fake_unlock(f);
    cr_assert_eq(dtw_pull(client, s.v, 0, &h, &err), DTW_OK, "%s", err.text);
    while (status == DTW_PENDING) {
        fake_release(f);
        status = dtw_wait(h, 50, NULL, &err);
    }
    cr_assert_eq(status, DTW_OK, "%s", err.text);
    expect_values(&s, 1, 2);
    cr_assert_eq(dtw_push_pull(client, gradients(&s), s.v, 1, 1, &h, &err), DTW_OK);
    for (status = DTW_PENDING; status == DTW_PENDING;) {
        fake_release(f);
        status = dtw_wait(h, 50, NULL, &err);
    }
    cr_assert_eq(status, DTW_OK, "%s", err.text);
    expect_values(&s, 0.875f, 1.75f);
    cr_assert_leq(f->most_in_flight, window);
    if (f->most_in_flight > 1)
        cr_assert_leq(f->most_bytes, bytes);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, never_over_the_window_of_requests)
{
    never_over_the_window(2, 64 << 20);
}

Test(steps, never_over_the_window_of_bytes)
{
    never_over_the_window(32, 5 << 20);
}

Test(steps, a_slice_larger_than_the_window_goes_alone)
{
    never_over_the_window(32, 1000);
}

/* Answers what has come, once `n` pushes have in all. */
static void
answer_push(struct fake *f, uint32_t n)
{
    fake_wait_seen(f, DT_OP_PUSHPULL, n);
    fake_release(f);
}

Test(steps, the_first_variable_goes_first_and_can_be_awaited)
{
    static const uint32_t order[] = {1, 0, 0, 0, 1, 1}; /* one was under way */
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client;
    struct set s = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_error err;
    uint32_t n = 0;

    f->window_bytes = 1000; /* one message at a time */
    client = fake_ready(f, 2, BIG);
    pull(client, &s, 0);
    fake_lock(f);
    f->slow = true;
    fake_unlock(f);
    cr_assert_eq(dtw_step_begin(client, s.v, 1, 1, &h, &err), DTW_OK, "%s", err.text);
    cr_expect_eq(dtw_wait_variable(h, 0, 0, &err), DTW_INVALID);
    cr_expect(strstr(err.text, "gradient is missing"), "%s", err.text);
    cr_assert_eq(dtw_step_gradient(h, 1, s.g[1], &err), DTW_OK, "%s", err.text);
    fake_wait_seen(f, DT_OP_PUSHPULL, ++n);
    cr_assert_eq(dtw_step_gradient(h, 0, s.g[0], &err), DTW_OK, "%s", err.text);
    cr_expect_eq(dtw_wait_variable(h, 2, 0, &err), DTW_INVALID);
    cr_expect_eq(dtw_wait_variable(h, 0, 10, &err), DTW_PENDING);
    for (; n <= 4; n++)
        answer_push(f, n);
    cr_assert_eq(dtw_wait_variable(h, 0, 10000, &err), DTW_OK, "%s", err.text);
    cr_expect_eq(s.v[0][0], 0.875f);
    cr_expect_eq(s.v[0][BIG - 1], 0.875f);
    cr_expect_eq(dtw_wait_variable(h, 1, 10, &err), DTW_PENDING);
    dtw_interrupt(client);
    cr_expect_eq(dtw_wait_variable(h, 1, -1, &err), DTW_INTERRUPTED);
    cr_expect_eq(dtw_wait_variable(h, 0, -1, &err), DTW_OK, "it was there already");
    dtw_interrupt_clear(client);
    for (; n <= 6; n++)
        answer_push(f, n);
    cr_assert_eq(dtw_wait_variable(h, 1, 10000, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    expect_values(&s, 0.875f, 1.75f);
    cr_assert_eq(f->n_pushed, 6);
    cr_expect_arr_eq(f->pushed, order, sizeof(order));
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, waiting_for_a_variable_ends_with_its_step)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_error err;

    pull(client, &s, 0);
    fake_lock(f);
    f->data_status = DT_E_INTERNAL;
    fake_unlock(f);
    cr_expect_eq(dtw_wait_variable(NULL, 0, 0, &err), DTW_INVALID);
    cr_assert_eq(dtw_step_begin(client, s.v, 1, 1, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_step_gradient(h, 1, s.g[1], &err), DTW_OK, "%s", err.text);
    enum dtw_status status = dtw_wait_variable(h, 1, -1, &err);
    cr_expect(status != DTW_OK && status != DTW_PENDING, "%d", (int)status);
    cr_expect_eq(dtw_wait_variable(h, 0, -1, &err), status, "also for one that was not given");
    cr_expect_eq(dtw_wait(h, -1, NULL, &err), status);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

static void
illegal_reply(enum fake_illegal how)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, 1000);
    struct set s = set_create(1000);
    struct dtw_error err;

    pull(client, &s, 0);
    fake_lock(f);
    f->illegal = how;
    fake_unlock(f);
    cr_assert_eq(dtw_step(client, gradients(&s), s.v, 1, 1, NULL, &err), DTW_PROTOCOL, "%d: %s",
                 how, err.text);
    cr_assert(strstr(err.text, "ps task 0"), "%s", err.text);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, illegal_replies_are_protocol_errors)
{
    int how;

    for (how = FAKE_FEW_ITEMS; how <= FAKE_NO_FRAMES; how++)
        illegal_reply((enum fake_illegal)how);
}

static void
refused(enum dt_status how, enum dtw_status expected)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, 1000);
    struct set s = set_create(1000);
    struct dtw_error err;

    pull(client, &s, 0);
    fake_lock(f);
    f->data_status = how;
    fake_unlock(f);
    cr_assert_eq(dtw_step(client, gradients(&s), s.v, 1, 1, NULL, &err), expected);
    cr_assert(strstr(err.text, "the script says no"), "%s", err.text);
    if (expected == DTW_JOB_FAILED)
        cr_assert_eq(dtw_step(client, gradients(&s), s.v, 1, 1, NULL, &err), DTW_JOB_FAILED);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

Test(steps, refusals_come_with_psds_words)
{
    refused(DT_R_NOT_FINITE, DTW_NOT_FINITE);
    refused(DT_R_TOO_MANY_BAD, DTW_TOO_MANY_BAD);
    refused(DT_R_JOB_COMPLETE, DTW_JOB_COMPLETE);
    refused(DT_R_QUOTA, DTW_REFUSED);
    refused(DT_R_JOB_FAILED, DTW_JOB_FAILED);
}

Test(steps, cancel_gives_the_buffers_back)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG), other = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_error err;

    pull(client, &s, 0);
    fake_lock(f);
    f->park = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, gradients(&s), s.v, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_PUSHPULL, 2);
    dtw_cancel(h);
    set_destroy(&s); /* nothing may touch it now */
    fake_release(f);
    fake_lock(f);
    f->park = false;
    fake_unlock(f);
    pull(client, &other, 1);
    expect_values(&other, 0.875f, 1.75f);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&other);
}

Test(steps, cancel_with_a_psd_that_reads_nothing)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, 4000000);
    struct set s = set_create(4000000);
    struct dtw_handle *h;
    struct dtw_error err;
    int64_t start;

    pull(client, &s, 0);
    fake_lock(f); /* it stands still: what is sent stays in the transport */
    cr_assert_eq(dtw_push_pull(client, gradients(&s), s.v, 1, 1, &h, &err), DTW_OK);
    cr_assert_eq(dtw_wait(h, 300, NULL, &err), DTW_PENDING);
    start = dt_now_ms();
    dtw_cancel(h);
    cr_assert_lt(dt_now_ms() - start, 5000);
    set_destroy(&s);
    fake_unlock(f);
    dtw_close(client);
    fake_stop(f);
}

Test(steps, close_gives_the_buffers_back)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    struct set s = set_create(BIG);
    struct dtw_handle *h;
    struct dtw_error err;

    pull(client, &s, 0);
    fake_lock(f);
    f->mute = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, gradients(&s), s.v, 1, 1, &h, &err), DTW_OK);
    dtw_close(client);
    set_destroy(&s);
    fake_stop(f);
}

static void *
interrupt_later(void *arg)
{
    dt_sleep_ms(200);
    dtw_interrupt(arg);
    return NULL;
}

Test(steps, interrupt_ends_waits_but_not_leave)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 2, 1000);
    struct set s = set_create(1000);
    struct dtw_handle *h;
    struct dtw_error err;
    pthread_t thread;

    pull(client, &s, 0);
    fake_lock(f);
    f->park = true;
    fake_unlock(f);
    cr_assert_eq(pthread_create(&thread, NULL, interrupt_later, client), 0);
    cr_assert_eq(dtw_step(client, gradients(&s), s.v, 1, 1, NULL, &err), DTW_INTERRUPTED);
    pthread_join(thread, NULL);
    cr_assert_eq(dtw_pull(client, s.v, 0, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, -1, NULL, &err), DTW_INTERRUPTED);
    fake_release(f);
    fake_lock(f);
    f->park = false;
    fake_unlock(f);
    dtw_interrupt_clear(client);
    pull(client, &s, 0);
    dtw_interrupt(client);
    cr_assert_eq(dtw_leave(client, 5000, &err), DTW_OK, "%s", err.text);
    dtw_close(client);
    fake_stop(f);
    set_destroy(&s);
}

static void *
steps_of_another_thread(void *arg)
{
    struct dtw_client *client = arg;
    struct set s = set_create(BIG);
    int i;

    for (i = 0; i < 20; i++)
        pull(client, &s, 0);
    set_destroy(&s);
    return NULL;
}

Test(steps, several_threads_share_a_client)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = fake_ready(f, 2, BIG);
    pthread_t threads[3];
    int i;

    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, steps_of_another_thread, client);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    dtw_close(client);
    fake_stop(f);
}

Test(steps, a_forked_child_may_not_use_it)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = fake_ready(f, 1, 10);
    struct dtw_error err;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        status = dtw_leave(client, 100, &err) == DTW_FORKED;
        dtw_close(client);
        _exit(status ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    cr_assert_eq(status, 0);
    cr_assert_eq(dtw_leave(client, 5000, &err), DTW_OK, "%s", err.text);
    dtw_close(client);
    fake_stop(f);
}
