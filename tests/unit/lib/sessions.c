/*
 * sessions.c - what happens when psd is away, restarts, forgets, or loses messages.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "proto/base/clock.h"
#include "proto/wire/op.h"

TestSuite(sessions, .timeout = 160, .fini = fake_no_leaks);

#define N 1000

static float v[2][N], g[2][N];
static float *values[] = {v[0], v[1]};
static const float *const grads[] = {g[0], g[1]};

static struct dtw_options
options_for(const char *const *endpoint, int64_t retry_for_ms)
{
    struct dtw_options o;

    dtw_options_init(&o);
    o.ps = endpoint;
    o.n_ps = 1;
    o.job = "test";
    o.lease_ms = 1000;
    o.retry_for_ms = retry_for_ms;
    o.log = fake_log;
    return o;
}

static struct dtw_client *
ready(struct fake *f)
{
    struct dtw_client *client = fake_ready(f, 2, N);
    struct dtw_handle *h;
    struct dtw_error err;
    int i;

    for (i = 0; i < N; i++)
        g[0][i] = g[1][i] = 1;
    cr_assert_eq(dtw_pull(client, values, 0, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    return client;
}

static void
step_goes_on(struct dtw_client *client, uint64_t expected)
{
    struct dtw_result result;
    struct dtw_error err;

    cr_assert_eq(dtw_step(client, grads, values, 1, 1, &result, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(result.step, expected);
    cr_assert_eq(result.accumulated, 2);
    cr_assert_eq(v[0][7], 1 - 0.5f * (float)expected);
    cr_assert_eq(v[1][N - 1], 2 - 0.5f * (float)expected);
}

Test(sessions, nobody_there_is_unavailable_and_says_where)
{
    const char *endpoint = "tcp://127.0.0.1:1";
    struct dtw_options o = options_for(&endpoint, 3600);
    struct dtw_client *client;
    struct dtw_error err;
    int64_t start = dt_now_ms();

    cr_assert_eq(dtw_open(&o, &client, &err), DTW_UNAVAILABLE);
    cr_assert(dt_now_ms() - start >= 3500 && dt_now_ms() - start < 8000);
    cr_assert(strstr(err.text, "ps task 0 at tcp://127.0.0.1:1"), "%s", err.text);
    cr_assert(strstr(fake_log_text, "5 waiting for tcp://127.0.0.1:1 (3 s)"), "%s", fake_log_text);
}

struct late {
    char endpoint[DT_MAX_ENDPOINT + 1];
    struct fake *fake;
};

static void *
start_late(void *arg)
{
    struct late *late = arg;

    dt_sleep_ms(1500);
    late->fake = fake_start(2, late->endpoint);
    return NULL;
}

Test(sessions, psd_may_come_later)
{
    struct late late = {"", fake_start(1, NULL)};
    const char *endpoint = late.endpoint;
    struct dtw_options o = options_for(&endpoint, 20000);
    struct dtw_client *client;
    struct dtw_error err;
    pthread_t thread;

    snprintf(late.endpoint, sizeof(late.endpoint), "%s", late.fake->endpoint);
    fake_stop(late.fake);
    pthread_create(&thread, NULL, start_late, &late);
    cr_assert_eq(dtw_open(&o, &client, &err), DTW_OK, "%s", err.text);
    pthread_join(thread, NULL);
    dtw_close(client);
    fake_stop(late.fake);
}

Test(sessions, stop_fd_ends_open)
{
    const char *endpoint = "tcp://127.0.0.1:1";
    struct dtw_options o = options_for(&endpoint, 30000);
    struct dtw_client *client;
    struct dtw_error err;
    int fds[2];

    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(write(fds[1], "x", 1), 1);
    o.stop_fd = fds[0];
    cr_assert_eq(dtw_open(&o, &client, &err), DTW_INTERRUPTED);
    close(fds[0]);
    close(fds[1]);
}

static enum dtw_status
open_refused(enum dt_status how, int64_t retry_for_ms, struct dtw_error *err)
{
    struct fake *f = fake_start(1, NULL);
    const char *endpoint = f->endpoint;
    struct dtw_options o = options_for(&endpoint, retry_for_ms);
    struct dtw_client *client;
    enum dtw_status status;

    fake_lock(f);
    f->hello_status = how;
    fake_unlock(f);
    status = dtw_open(&o, &client, err);
    cr_assert_null(client);
    fake_stop(f);
    return status;
}

Test(sessions, refused_hello)
{
    struct dtw_error err;

    cr_assert_eq(open_refused(DT_R_MISMATCH, 10000, &err), DTW_MISMATCH);
    cr_assert(strstr(err.text, "the script says no"), "%s", err.text);
    cr_assert_eq(open_refused(DT_R_JOB_COMPLETE, 10000, &err), DTW_JOB_COMPLETE);
    cr_assert_eq(open_refused(DT_R_JOB_FAILED, 10000, &err), DTW_JOB_FAILED);
    cr_assert_eq(open_refused(DT_R_NO_JOB, 10000, &err), DTW_NO_JOB);
    cr_assert_eq(open_refused(DT_R_GOING_DOWN, 1500, &err), DTW_UNAVAILABLE);
    cr_assert_eq(open_refused(DT_R_RANK_TAKEN, 1500, &err), DTW_RANK_TAKEN);
    cr_assert(strstr(err.text, "the script says no"), "%s", err.text);
}

static void *
free_the_rank(void *arg)
{
    struct fake *f = arg;

    fake_wait_seen(f, DT_OP_HELLO, 2);
    fake_lock(f);
    f->hello_status = DT_OK;
    fake_unlock(f);
    return NULL;
}

Test(sessions, a_taken_rank_is_retried)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client;
    pthread_t thread;

    f->hello_status = DT_R_RANK_TAKEN;
    pthread_create(&thread, NULL, free_the_rank, f);
    client = fake_open(&f, 1, 20000);
    pthread_join(thread, NULL);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, fenced_connections_resume)
{
    struct fake *f = fake_start(3, NULL);
    struct dtw_client *client = ready(f);
    uint64_t i;

    for (i = 1; i <= 20; i++) {
        fake_fence(f);
        step_goes_on(client, i);
    }
    cr_assert_eq(f->applied, 40);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, a_lost_reply_is_asked_for_again_and_the_push_applied_once)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_handle *h;
    struct dtw_result result;
    struct dtw_error err;

    fake_lock(f);
    f->swallow_op = DT_OP_PUSHPULL;
    f->swallow = 2;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, grads, values, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_PUSHPULL, 2);
    fake_fence(f); /* the connection was cut: the next heartbeat finds out */
    cr_assert_eq(dtw_wait(h, 10000, &result, &err), DTW_OK, "%s", err.text);
    cr_assert(f->applied == 2 && f->resent == 2);
    cr_assert(result.accumulated == 2 && result.step == 1);
    cr_assert_eq(v[0][0], 0.5f);
    step_goes_on(client, 2);
    dtw_close(client);
    fake_stop(f);
}

/* Neither a waiter nor the window makes the background thread look at it; heartbeats come each 30 s. */
Test(sessions, a_small_push_that_nobody_waits_for_is_asked_for_again_soon)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client;
    struct dtw_handle *h;
    struct dtw_error err;

    f->lease_ms = 120000;
    client = ready(f);
    fake_lock(f);
    f->swallow_op = DT_OP_PUSH;
    f->swallow = 1;
    fake_unlock(f);
    usleep(1200000); /* until nothing of the opening is left that would wake it */
    cr_assert_eq(dtw_push(client, grads, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_PUSH, 1);
    fake_fence(f);
    fake_wait_seen(f, DT_OP_PUSH, 2);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert(f->applied == 2 && f->resent == 2);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, parked_requests_are_sent_again)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_handle *h;
    struct dtw_error err;

    fake_lock(f);
    f->park = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, grads, values, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_PUSHPULL, 1);
    fake_fence(f);
    fake_wait_seen(f, DT_OP_PUSHPULL, 2);
    fake_release(f);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(f->applied, 2);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, silence_makes_a_new_connection)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_handle *h;
    struct dtw_error err;
    uint32_t hellos = fake_seen(f, DT_OP_HELLO);

    fake_lock(f);
    f->mute = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, grads, values, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_HELLO, hellos + 1);
    fake_lock(f);
    f->mute = false;
    fake_unlock(f);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(f->applied, 2);
    step_goes_on(client, 2);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, a_new_life_ends_what_is_outstanding_and_join_goes_on)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_handle *h;
    struct dtw_error err;
    uint64_t first = 0;

    fake_lock(f);
    f->park = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push_pull(client, grads, values, 1, 1, &h, &err), DTW_OK);
    fake_wait_seen(f, DT_OP_PUSHPULL, 2);
    fake_new_life(f);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_LOST);
    cr_assert(strstr(err.text, "join again"), "%s", err.text);
    cr_assert_eq(dtw_pull(client, values, 0, &h, &err), DTW_LOST);
    fake_lock(f);
    f->park = false;
    f->join_step = 3;
    fake_unlock(f);
    cr_assert_eq(dtw_join(client, &first, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(first, 3);
    cr_assert_eq(f->last_join, 0);
    cr_assert_eq(dtw_push(client, grads, 1, 1, &h, &err), DTW_INVALID); /* nothing pulled yet */
    cr_assert_eq(dtw_pull(client, values, 1, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    step_goes_on(client, 2);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, a_restarted_psd_without_the_job)
{
    struct late late = {"", fake_start(2, NULL)};
    struct dtw_client *client = ready(late.fake);
    struct dtw_error err;

    snprintf(late.endpoint, sizeof(late.endpoint), "%s", late.fake->endpoint);
    fake_stop(late.fake);
    late.fake = fake_start(3, late.endpoint);
    fake_lock(late.fake);
    late.fake->hello_status = DT_R_NO_JOB;
    fake_unlock(late.fake);
    cr_assert_eq(dtw_step(client, grads, values, 1, 1, NULL, &err), DTW_NO_JOB, "%s", err.text);
    cr_assert_eq(dtw_leave(client, 1000, &err), DTW_NO_JOB);
    dtw_close(client);
    fake_stop(late.fake);
}

Test(sessions, a_restarted_psd_with_the_job_and_other_ports)
{
    struct late late = {"", fake_start(2, NULL)};
    struct dtw_client *client = ready(late.fake);
    struct dtw_handle *h;
    struct dtw_error err;
    uint64_t first;

    snprintf(late.endpoint, sizeof(late.endpoint), "%s", late.fake->endpoint);
    fake_stop(late.fake);
    late.fake = fake_start(3, late.endpoint);
    late.fake->must_join = true;
    cr_assert_eq(dtw_step(client, grads, values, 1, 1, NULL, &err), DTW_LOST, "%s", err.text);
    cr_assert_eq(dtw_join(client, &first, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(late.fake->n_declared, 1);
    cr_assert_eq(dtw_pull(client, values, 0, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_step(client, grads, values, 1, 1, NULL, &err), DTW_OK, "%s", err.text);
    dtw_close(client);
    fake_stop(late.fake);
}

Test(sessions, gone_for_good_is_unavailable_with_the_buffers_back)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = fake_open(&f, 1, 1500);
    uint64_t n = N;
    struct dtw_variable a = {.name = "a", .n_dims = 1, .shape = &n, .lr = 1};
    struct dtw_handle *h;
    struct dtw_error err;
    char where[DT_MAX_ENDPOINT + 32];

    dtw_declare(client, &a, NULL, &err);
    cr_assert_eq(dtw_init(client, fake_ones, NULL, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_pull(client, values, 0, &h, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(h, 10000, NULL, &err), DTW_OK, "%s", err.text);
    snprintf(where, sizeof(where), "ps task 0 at %s", f->endpoint);
    fake_stop(f);
    cr_assert_eq(dtw_step(client, grads, values, 1, 1, NULL, &err), DTW_UNAVAILABLE);
    cr_assert(strstr(err.text, where), "%s", err.text);
    cr_assert_eq(dtw_step(client, grads, values, 1, 1, NULL, &err), DTW_UNAVAILABLE);
    cr_assert_eq(dtw_leave(client, 1000, &err), DTW_UNAVAILABLE); /* a push was not acknowledged */
    dtw_close(client);
}

Test(sessions, goodbye_is_acknowledged_and_hello_goes_on)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = ready(f);

    fake_goodbye(f);
    fake_wait_seen(f, DT_OP_GOODBYE, 2);
    step_goes_on(client, 1);
    cr_assert(strstr(fake_log_text, "is shutting down"), "%s", fake_log_text);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, leave_whose_reply_is_lost)
{
    struct fake *f = fake_start(2, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_error err;

    step_goes_on(client, 1);
    fake_lock(f);
    f->swallow_op = DT_OP_LEAVE;
    f->swallow = 1;
    f->hello_status = DT_R_LEFT;
    fake_unlock(f);
    fake_fence(f);
    fake_lock(f); /* LEAVE itself gets through, then the connection is cut */
    f->shards[0].session = f->next_session - 1;
    fake_unlock(f);
    cr_assert_eq(dtw_leave(client, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, leave_without_an_answer_is_a_warning)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_error err;
    int64_t start = dt_now_ms();

    step_goes_on(client, 1);
    fake_lock(f);
    f->mute = true;
    fake_unlock(f);
    cr_assert_eq(dtw_leave(client, 500, &err), DTW_OK, "%s", err.text);
    cr_assert(dt_now_ms() - start < 5000);
    cr_assert(strstr(fake_log_text, "4 psd did not acknowledge that rank 0 leaves"), "%s",
              fake_log_text);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, leave_with_a_push_that_was_not_acknowledged_fails)
{
    struct fake *f = fake_start(1, NULL);
    struct dtw_client *client = ready(f);
    struct dtw_handle *h;
    struct dtw_error err;

    fake_lock(f);
    f->mute = true;
    fake_unlock(f);
    cr_assert_eq(dtw_push(client, grads, 1, 1, &h, &err), DTW_OK);
    cr_assert_eq(dtw_leave(client, 500, &err), DTW_UNAVAILABLE);
    cr_assert_eq(dtw_wait(h, 5000, NULL, &err), DTW_CANCELLED);
    dtw_close(client);
    fake_stop(f);
}

Test(sessions, a_lost_ps_task_silences_the_others)
{
    struct fake *f[2] = {fake_start(1, NULL), fake_start(1, NULL)};
    struct dtw_client *client = fake_open(f, 2, 20000);
    uint32_t beats;

    fake_lock(f[1]);
    f[1]->mute = true;
    fake_unlock(f[1]);
    dt_sleep_ms(3000); /* broken after a second or more, away for a lease */
    beats = fake_seen(f[0], DT_OP_HEARTBEAT);
    dt_sleep_ms(1000);
    cr_assert_leq(fake_seen(f[0], DT_OP_HEARTBEAT), beats + 1);
    fake_lock(f[1]);
    f[1]->mute = false;
    fake_unlock(f[1]);
    fake_wait_seen(f[0], DT_OP_HEARTBEAT, beats + 4);
    dtw_close(client);
    fake_stop(f[0]);
    fake_stop(f[1]);
}
