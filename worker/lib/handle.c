/*
 * handle.c - a request of the application. Lock held everywhere, but for handle_release, which runs
 * on libzmq's I/O threads.
 */
#include "worker/lib/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "worker/lib/recover.h"

#define LET_GO_MS 1000 /* a DEALER that keeps a finished handle's frames for so long is made anew */

struct dtw_handle *
handle_create(struct dtw_client *client)
{
    struct dtw_handle *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->client = client;
    h->wake_fd = client->driver.wake_fd;
    h->raw = DT_OK;
    atomic_init(&h->holds, 1);
    h->touched = calloc(client->n_tasks, sizeof(*h->touched));
    h->control = calloc(client->n_tasks, sizeof(*h->control));
    if (!h->touched || !h->control) {
        handle_destroy(h);
        return NULL;
    }
    return h;
}

void
handle_destroy(struct dtw_handle *h)
{
    struct message *m, *next;
    uint32_t i;

    if (!h)
        return;
    DL_FOREACH_SAFE(h->messages, m, next)
    {
        DL_DELETE(h->messages, m);
        message_destroy(m);
    }
    for (i = 0; h->control && i < h->client->n_tasks; i++)
        dt_buffer_deinit(&h->control[i].body);
    free(h->control);
    free(h->touched);
    free(h->copy);
    stepwise_destroy(h->stepwise);
    free(h);
}

void
handle_add(struct dtw_handle *h, struct message *m)
{
    m->handle = h;
    DL_APPEND(h->messages, m);
    h->n_unanswered++;
}

static void
hand_over(struct dtw_handle *h)
{
    struct message *m, *next;

    DL_FOREACH_SAFE(h->messages, m, next)
    {
        struct connection *c = m->connection;

        DL_DELETE(h->messages, m);
        h->touched[c->task->index] |= 1ull << c->shard;
        connection_add(c, m);
    }
}

void
handle_submit(struct dtw_handle *h, bool alone)
{
    DL_APPEND(h->client->handles, h);
    hand_over(h);
    driver_wake(h->client, alone);
}

void
handle_add_sent(struct dtw_handle *h)
{
    hand_over(h);
    driver_wake(h->client, true);
}

void
handle_release(void *arg)
{
    struct dtw_handle *h = arg;
    uint64_t one = 1;
    int fd = h->wake_fd; /* open until the context is gone */

    /* After the decrement h may be freed by the driver. */
    if (atomic_fetch_sub_explicit(&h->holds, 1, memory_order_acq_rel) == 1 &&
        write(fd, &one, sizeof(one)) < 0)
        return; /* the eventfd's counter is full: it is readable anyway */
}

static void
done(struct dtw_handle *h)
{
    h->done = true;
    driver_news(&h->client->driver);
}

static void
finish(struct dtw_handle *h, int64_t now)
{
    h->finished = true;
    h->finished_ms = now;
    if (atomic_fetch_sub_explicit(&h->holds, 1, memory_order_acq_rel) == 1)
        done(h);
    else
        h->client->driver.news = true; /* settle soon */
}

void
handle_answered(struct dtw_handle *h, int64_t now)
{
    if (--h->n_unanswered > 0 || h->finished)
        return;
    if (h->is_pull)
        atomic_store_explicit(&h->client->worker_step, h->result.step, memory_order_relaxed);
    h->result.partial =
        h->result.accumulated > 0 && h->result.stale + h->result.duplicate + h->result.refused > 0;
    finish(h, now);
}

void
handle_finish(struct dtw_handle *h, enum dtw_status status, enum dt_status raw, const char *text)
{
    struct dtw_client *client = h->client;
    uint32_t t, s;

    if (h->finished)
        return;
    h->status = status;
    h->raw = raw;
    snprintf(h->text, sizeof(h->text), "%s", text && *text ? text : dtw_strerror(status));
    if (h->is_push && h->n_unanswered > 0)
        client->unacked = true;
    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            if (h->touched[t] & (1ull << s))
                connection_abandon(client->tasks[t].shards[s], h);
        }
    }
    finish(h, dt_now_ms());
}

void
handle_finish_all(struct dtw_client *client, enum dtw_status status, const char *text)
{
    struct dtw_handle *h;

    DL_FOREACH(client->handles, h)
    handle_finish(h, status, DT_OK, text);
}

/* Libzmq keeps the frames (the peer does not read, or is not there): only a close makes it let go. */
static void
force(struct dtw_handle *h, int64_t now)
{
    struct dtw_client *client = h->client;
    uint32_t t, s;

    h->finished_ms = now;
    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            struct connection *c = client->tasks[t].shards[s];

            if (!(h->touched[t] & (1ull << s)) || !c->dealer)
                continue;
            if (c->state == CONNECTION_DEAD)
                connection_close(c);
            else if (connection_reconnect(c, now))
                recover_start(c, now);
        }
    }
}

int64_t
handle_settle(struct dtw_client *client, int64_t now)
{
    struct dtw_handle *h;
    int64_t due = DT_FOREVER;

    DL_FOREACH(client->handles, h)
    {
        if (!h->finished || h->done)
            continue;
        if (atomic_load_explicit(&h->holds, memory_order_acquire) == 0) {
            done(h);
            continue;
        }
        if (now >= h->finished_ms + LET_GO_MS)
            force(h, now);
        if (h->finished_ms + LET_GO_MS < due)
            due = h->finished_ms + LET_GO_MS;
    }
    return due;
}

static bool
is_done(const struct dtw_client *client, const void *arg)
{
    (void)client;
    return ((const struct dtw_handle *)arg)->done;
}

enum wait_end
handle_wait(struct dtw_handle *h, int64_t deadline_ms, bool interruptible)
{
    return driver_wait(h->client, is_done, h, deadline_ms, interruptible);
}

void
handle_cancel(struct dtw_handle *h)
{
    handle_finish(h, DTW_CANCELLED, DT_OK, NULL);
    handle_wait(h, DT_FOREVER, false);
    DL_DELETE(h->client->handles, h);
    handle_destroy(h);
}

static enum dtw_status
outcome(const struct dtw_handle *h, struct dtw_result *result, struct dtw_error *err)
{
    if (result)
        *result = h->result;
    if (h->status != DTW_OK)
        client_error(err, h->status, "%s", h->text);
    return h->status;
}

enum dtw_status
handle_collect(struct dtw_handle *h, struct dtw_result *result, struct dtw_error *err)
{
    enum dtw_status status = outcome(h, result, err);

    DL_DELETE(h->client->handles, h);
    handle_destroy(h);
    return status;
}

enum dtw_status
handle_run(struct dtw_handle *h, struct dtw_handle **keep, int64_t deadline_ms, bool interruptible,
           struct dtw_error *err)
{
    enum wait_end end;
    enum dtw_status status;

    if (keep)
        *keep = NULL;
    handle_submit(h, false);
    end = handle_wait(h, deadline_ms, interruptible);
    if (end == WAIT_INTERRUPTED) {
        handle_cancel(h);
        return client_error(err, DTW_INTERRUPTED, "interrupted");
    }
    if (end == WAIT_TIMEOUT) {
        handle_cancel(h);
        return client_error(err, DTW_UNAVAILABLE, "psd did not answer in time");
    }
    status = outcome(h, NULL, err);
    DL_DELETE(h->client->handles, h);
    if (keep)
        *keep = h;
    else
        handle_destroy(h);
    return status;
}
