/*
 * timer.c - what time brings: HELLO again, heartbeats, a ps task that is away, lines about who is
 * waited for. Lock and driver token held.
 */
#include "worker/lib/timer.h"

#include <string.h>

#include "proto/base/clock.h"
#include "worker/lib/handle.h"
#include "worker/lib/recover.h"

#define HELLO_FRESH_MS 10000 /* no answer at all for so long: try with a new socket */
#define PROBE_MS 500
#define FIRST_TOLD_MS 3000
#define TOLD_EACH_MS 5000

static void
sooner(int64_t *due, int64_t t)
{
    if (t < *due)
        *due = t;
}

/* One ps task has been away for a lease: the others must not go on counting this worker. */
static bool
must_be_silent(const struct dtw_client *client, int64_t now)
{
    uint32_t i;

    for (i = 0; i < client->n_tasks; i++) {
        const struct task *t = &client->tasks[i];

        if (t->n_shards > 0 && !client_is_task_ready(t) &&
            now >= t->heard_ms + client->params.lease_ms)
            return true;
    }
    return false;
}

static void
tick_hello(struct connection *c, int64_t now, int64_t *due)
{
    int64_t heard = c->dealer_ms > c->heard_ms ? c->dealer_ms : c->heard_ms;

    if (c->hello_due_ms == DT_FOREVER)
        return;
    if ((!c->dealer || (c->last_hello && now >= heard + HELLO_FRESH_MS)) &&
        !connection_reconnect(c, now))
        return;
    if (now >= c->hello_due_ms)
        recover_say_hello(c, now);
    sooner(due, c->hello_due_ms);
}

/* When the next heartbeat is due. While something is outstanding and nothing is heard it comes early:
 * a cut connection that libzmq has mended in silence is found out by its answer, HELLO_REQUIRED. */
static int64_t
heartbeat_due(const struct connection *c)
{
    int64_t probe = c->heard_ms + PROBE_MS;

    if (!c->list || c->heartbeat_ms >= 0 || probe > c->heartbeat_due_ms)
        return c->heartbeat_due_ms;
    return probe;
}

/* A heartbeat without an answer for half a lease, and nothing else came: the connection is broken. */
static void
tick_ready(struct connection *c, bool silent, int64_t now, int64_t *due)
{
    int64_t patience = c->task->client->params.lease_ms / 2;
    int64_t limit = (c->heartbeat_ms > c->heard_ms ? c->heartbeat_ms : c->heard_ms) +
                    (patience > 1000 ? patience : 1000);

    if (c->heartbeat_ms >= 0 && now >= limit) {
        client_log(c->task->client, DTW_LOG_DEBUG, "%s does not answer: connecting anew",
                   c->endpoint);
        if (connection_reconnect(c, now))
            recover_start(c, now);
        sooner(due, now);
        return;
    }
    if (!silent && now >= heartbeat_due(c))
        connection_heartbeat(c, now);
    if (!silent)
        sooner(due, heartbeat_due(c));
    if (c->heartbeat_ms >= 0)
        sooner(due, limit);
}

static void
give_up(struct task *t, enum dtw_status code)
{
    struct dtw_client *client = t->client;

    t->gave_up = true;
    if (code == DTW_RANK_TAKEN)
        client_error(&t->trouble, code, "ps task %u at %s: %s", t->index, t->endpoint, t->taken);
    else
        client_error(&t->trouble, code,
                     "ps task %u at %s did not answer for %lld s: is psd running there?", t->index,
                     t->endpoint, (long long)(client->retry_for_ms + 500) / 1000);
    handle_finish_all(client, code, t->trouble.text);
    driver_news(&client->driver);
}

static void
tell(struct task *t, int64_t now)
{
    long long s = (long long)(now - t->away_ms + 500) / 1000;

    t->told_ms = now + TOLD_EACH_MS;
    if (t->taken_ms >= 0)
        client_log(t->client, DTW_LOG_NOTICE, "waiting for %s: %s (%lld s)", t->endpoint, t->taken,
                   s);
    else
        client_log(t->client, DTW_LOG_NOTICE, "waiting for %s (%lld s)", t->endpoint, s);
}

static void
tick_task(struct task *t, int64_t now, int64_t *due)
{
    int64_t since, retry_for = t->client->retry_for_ms;

    if (client_is_task_ready(t)) {
        t->away_ms = -1;
        t->gave_up = false;
        return;
    }
    if (t->away_ms < 0) {
        t->away_ms = now;
        t->told_ms = now + FIRST_TOLD_MS;
    }
    since = t->progress_ms > t->away_ms ? t->progress_ms : t->away_ms;
    if (t->taken_ms >= 0)
        since = t->taken_ms;
    if (!t->gave_up && now - since >= retry_for)
        give_up(t, t->taken_ms >= 0 ? DTW_RANK_TAKEN : DTW_UNAVAILABLE);
    if (now >= t->told_ms)
        tell(t, now);
    sooner(due, t->told_ms);
    if (!t->gave_up && retry_for < DT_FOREVER - since)
        sooner(due, since + retry_for);
}

static const struct connection *
longest_parked(const struct dtw_client *client)
{
    const struct connection *found = NULL;
    uint32_t t, s;

    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < client->tasks[t].n_shards; s++) {
            const struct connection *c = client->tasks[t].shards[s];

            if (c && c->n_parked && c->waiting->reason != DT_WAIT_NOTHING &&
                (!found || c->parked_ms < found->parked_ms))
                found = c;
        }
    }
    return found;
}

static void
tell_waiting(struct dtw_client *client, const struct connection *c, int64_t now)
{
    const struct dt_waiting *w = c->waiting;
    struct dt_buffer b = {0};
    uint32_t i;

    dt_buffer_printf(&b, "waiting for %s", w->n_ranks ? "rank " : "other workers");
    for (i = 0; i < w->n_ranks; i++)
        dt_buffer_printf(&b, "%s%u", i ? ", " : "", w->ranks[i]);
    if (w->reason == DT_WAIT_INIT)
        dt_buffer_printf(&b, " to give the initial values");
    else if (w->reason == DT_WAIT_GLOBAL_STEP && w->step == DT_NO_VERSION)
        dt_buffer_printf(&b, " to end");
    else if (w->reason == DT_WAIT_CLOCK)
        dt_buffer_printf(&b, " to have finished %llu steps", (unsigned long long)w->step);
    else if (w->reason == DT_WAIT_GLOBAL_STEP)
        dt_buffer_printf(&b, " to bring the global step to %llu", (unsigned long long)w->step);
    else
        dt_buffer_printf(&b, " at step %llu", (unsigned long long)w->step);
    client_log(client, DTW_LOG_NOTICE, "%s (%lld s)", dt_buffer_str(&b),
               (long long)(now - c->parked_ms + 500) / 1000);
    dt_buffer_deinit(&b);
}

static void
tick_waiting(struct dtw_client *client, int64_t now, int64_t *due)
{
    const struct connection *c = longest_parked(client);

    if (!c)
        return;
    if (client->waiting_told_ms < c->parked_ms)
        client->waiting_told_ms = c->parked_ms;
    if (now >= client->waiting_told_ms + client->waiting_ms) {
        client->waiting_told_ms = now;
        tell_waiting(client, c, now);
    }
    sooner(due, client->waiting_told_ms + client->waiting_ms);
}

int64_t
timer_tick(struct dtw_client *client, int64_t now)
{
    bool silent = must_be_silent(client, now);
    int64_t due = DT_FOREVER;
    uint32_t t, s;

    if (client->left)
        return DT_FOREVER;
    for (t = 0; t < client->n_tasks; t++) {
        bool alive = false;

        for (s = 0; s < DT_MAX_SHARDS; s++) {
            struct connection *c = client->tasks[t].shards[s];

            if (!c || c->state == CONNECTION_DEAD)
                continue;
            alive = true;
            if (c->state == CONNECTION_HELLO)
                tick_hello(c, now, &due);
            else
                tick_ready(c, silent, now, &due);
        }
        if (alive)
            tick_task(&client->tasks[t], now, &due);
    }
    tick_waiting(client, now, &due);
    return due;
}

bool
timer_is_busy(const struct dtw_client *client)
{
    uint32_t t, s;

    if (client->left)
        return false;
    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            const struct connection *c = client->tasks[t].shards[s];

            if (c && (c->state == CONNECTION_HELLO ||
                      (c->state == CONNECTION_READY && c->heartbeat_ms >= 0)))
                return true;
        }
    }
    return false;
}
