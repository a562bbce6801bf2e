/*
 * recover.c - sessions. HELLO_REQUIRED is the one recovery path: whatever happened (reconnect, fence,
 * restart), the connection says HELLO and compares incarnation and life with those it had.
 *
 * Invariants: between HELLO and its reply nothing else is sent on the connection; shards above 0 say
 * HELLO only while shard 0 is ready. Lock and driver token held.
 */
#include "worker/lib/recover.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/wire/hello.h"
#include "proto/wire/stats.h"
#include "worker/lib/handle.h"

#define HELLO_EACH_MS 1000
#define HELLO_LATE_MS 5000 /* an older HELLO was answered: the newest one's answer follows */
#define PROBE_MS 500
#define HELLO_FRESH_MS 10000 /* no answer at all for so long: try with a new socket */
#define HELLO_FIRST_EACH_MS 100
#define FIRST_TOLD_MS 3000
#define TOLD_EACH_MS 5000

static void
sooner(int64_t *due, int64_t t)
{
    if (t < *due)
        *due = t;
}

void
recover_start(struct connection *c, int64_t due_ms)
{
    if (c->state == CONNECTION_DEAD)
        return;
    c->state = CONNECTION_HELLO;
    c->first_hello = c->last_hello = 0;
    c->hello_due_ms = due_ms;
    c->heartbeat_ms = -1;
    c->task->client->driver.news = true;
    client_update_ready(c->task->client);
}

static void
fill_hello(const struct connection *c, struct dt_hello *m)
{
    const struct task *t = c->task;
    const struct dtw_client *client = t->client;

    memset(m, 0, sizeof(*m));
    memcpy(m->uuid, client->uuid, sizeof(m->uuid));
    m->rank = client->rank;
    m->task = t->index;
    m->fresh = client->fresh;
    m->incarnation = t->incarnation;
    m->life = t->life;
    m->pid = (uint64_t)client->pid;
    snprintf(m->job, sizeof(m->job), "%s", client->job);
    snprintf(m->endpoint, sizeof(m->endpoint), "%s", t->endpoint);
    snprintf(m->host, sizeof(m->host), "%s", client->host);
}

static void
send_hello(struct connection *c, int64_t now)
{
    struct dtw_client *client = c->task->client;
    struct dt_out_frame params = {client->params_body.data, client->params_body.len, NULL, NULL};
    struct dt_buffer header = {0};
    struct dt_hello m;

    if (c->shard > 0 && c->task->shards[0]->state != CONNECTION_READY) {
        c->hello_due_ms = DT_FOREVER;
        return;
    }
    c->hello_due_ms = now + HELLO_EACH_MS;
    fill_hello(c, &m);
    dt_hello_encode(&header, client->next_request + 1, &m);
    if (!header.failed &&
        dt_dealer_send(c->dealer, header.data, header.len, &params, 1) == DT_SENT) {
        c->last_hello = ++client->next_request;
        if (!c->first_hello)
            c->first_hello = c->last_hello;
    }
    dt_buffer_deinit(&header);
}

/* Another life or another incarnation: what is outstanding will never be answered. */
static void
lose(struct task *t)
{
    struct dtw_client *client = t->client;
    char text[DT_MAX_TEXT + 1];

    snprintf(text, sizeof(text),
             "rank %u lost its place in job %s on ps task %u at %s (its lease ended, or psd was "
             "restarted): join again",
             client->rank, client->job, t->index, t->endpoint);
    client->lost = true;
    declare_forget_versions(&client->declared);
    handle_finish_all(client, DTW_LOST, text);
    driver_news(&client->driver);
}

static bool
update_peer(struct task *t, uint32_t shard, const char *peer, bool anew, int64_t now)
{
    struct connection *c = t->shards[shard];
    char endpoint[DT_MAX_ENDPOINT + 1];
    bool moved;

    if (dt_endpoint_peer(t->endpoint, peer, endpoint, sizeof(endpoint)) != DT_OK) {
        client_fatal(t->client, DTW_PROTOCOL, "ps task %u at %s: shard %u has no endpoint",
                     t->index, t->endpoint, shard);
        return false;
    }
    if (!c)
        c = t->shards[shard] = connection_create(t, shard, endpoint);
    if (!c) {
        client_fatal(t->client, DTW_NO_MEMORY, "short of memory");
        return false;
    }
    moved = strcmp(c->endpoint, endpoint) != 0 || !c->dealer;
    if (moved) {
        snprintf(c->endpoint, sizeof(c->endpoint), "%s", endpoint);
        if (!connection_reconnect(c, now))
            return false;
    }
    if (c->state == CONNECTION_DEAD)
        c->state = CONNECTION_HELLO;
    if (moved || anew || c->state == CONNECTION_HELLO)
        recover_start(c, now);
    return true;
}

static void
update_peers(struct task *t, const struct dt_hello_reply *m, bool anew, int64_t now)
{
    uint32_t i;

    t->n_shards = m->n_shards;
    for (i = 1; i < DT_MAX_SHARDS; i++) {
        if (i < m->n_shards) {
            if (!update_peer(t, i, m->peers[i], anew, now))
                return;
        } else if (t->shards[i]) {
            t->shards[i]->state = CONNECTION_DEAD;
            connection_close(t->shards[i]);
        }
    }
}

static void
start_session(struct connection *c, uint64_t session, const struct dt_hello_reply *m, int64_t now)
{
    struct dtw_client *client = c->task->client;
    uint64_t quarter = m->window_bytes / 4;

    c->session = session;
    c->window = m->window;
    c->window_bytes = m->window_bytes;
    if (quarter < client->message_bytes)
        client->message_bytes = quarter;
    c->state = CONNECTION_READY;
    c->first_hello = c->last_hello = 0;
    c->heartbeat_ms = -1;
    c->heartbeat_due_ms = now + client->params.lease_ms / 4;
    connection_rewind(c);
    client->driver.news = true;
}

static bool
is_legal(const struct connection *c, const struct dt_hello_reply *m)
{
    return m->shard == c->shard && m->n_shards >= 1 && m->n_shards <= DT_MAX_SHARDS &&
           c->shard < m->n_shards && m->incarnation && m->life && m->window >= 1;
}

static void
accept_shard0(struct connection *c, uint64_t session, const struct dt_hello_reply *m, int64_t now)
{
    struct task *t = c->task;
    bool first = t->incarnation == 0;
    bool anew = !first && (t->incarnation != m->incarnation || t->life != m->life);

    t->incarnation = m->incarnation;
    t->life = m->life;
    t->must_join = m->must_join;
    t->first_step = m->first_step;
    t->taken_ms = -1;
    if (anew)
        lose(t);
    start_session(c, session, m, now);
    update_peers(t, m, first || anew, now);
}

static void
accept_other(struct connection *c, uint64_t session, const struct dt_hello_reply *m, int64_t now)
{
    struct task *t = c->task;

    if (m->incarnation != t->incarnation || m->life != t->life) {
        c->hello_due_ms = DT_FOREVER;
        recover_start(t->shards[0], now);
        return;
    }
    start_session(c, session, m, now);
}

static void
accept_hello(struct connection *c, struct dt_head *head, int64_t now)
{
    struct dt_hello_reply m;

    if (dt_hello_reply_decode(head, &m) != DT_OK || !is_legal(c, &m)) {
        client_fatal(c->task->client, DTW_PROTOCOL, "ps task %u at %s: an illegal reply to HELLO",
                     c->task->index, c->endpoint);
        return;
    }
    c->task->progress_ms = now;
    if (c->shard == 0)
        accept_shard0(c, head->session, &m, now);
    else
        accept_other(c, head->session, &m, now);
    client_update_ready(c->task->client);
}

/* LEFT is the reply to a LEAVE whose own reply was lost. */
static void
already_left(struct connection *c, int64_t now)
{
    struct message *m, *next;
    bool found = false;

    for (m = c->list; m; m = next) {
        struct dtw_handle *h = m->handle;

        next = m->next;
        if (m->op != DT_OP_LEAVE || !h)
            continue;
        found = true;
        connection_finish(c, m);
        handle_answered(h, now);
    }
    if (!found)
        client_fatal(c->task->client, DTW_CLOSED, "rank %u has left job %s", c->task->client->rank,
                     c->task->client->job);
    c->state = CONNECTION_DEAD;
}

static void
ask_shard0(struct connection *c, int64_t now)
{
    struct task *t = c->task;
    int64_t due = t->hello_first_ms + HELLO_FIRST_EACH_MS;

    if (c->shard == 0)
        return; /* illegal; HELLO is repeated anyway */
    t->progress_ms = now;
    c->hello_due_ms = DT_FOREVER;
    if (t->shards[0]->state != CONNECTION_READY)
        return;
    t->hello_first_ms = now;
    recover_start(t->shards[0], due > now ? due : now);
}

static void
refuse_for_good(struct connection *c, const struct dt_head *head)
{
    struct dtw_client *client = c->task->client;
    uint32_t t, s;

    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            if (client->tasks[t].shards[s])
                client->tasks[t].shards[s]->state = CONNECTION_DEAD;
        }
    }
    client_fatal(client, client_status(head->status), "ps task %u at %s: %s", c->task->index,
                 c->task->endpoint, head->text[0] ? head->text : dt_status_text(head->status));
}

static void
refused_hello(struct connection *c, const struct dt_head *head, int64_t now)
{
    struct task *t = c->task;

    switch ((int)head->status) {
    case DT_R_HELLO_FIRST:
        ask_shard0(c, now);
        break;
    case DT_R_HELLO_REQUIRED:
        c->hello_due_ms = now + HELLO_FIRST_EACH_MS;
        break;
    case DT_R_GOING_DOWN:
        break; /* again in a second */
    case DT_R_RANK_TAKEN:
        if (t->taken_ms < 0)
            t->taken_ms = now;
        snprintf(t->taken, sizeof(t->taken), "%s", head->text);
        break;
    case DT_R_LEFT:
        already_left(c, now);
        break;
    default:
        refuse_for_good(c, head);
        break;
    }
}

void
recover_hello_reply(struct connection *c, struct dt_head *head, int64_t now)
{
    if (c->state != CONNECTION_HELLO || !c->first_hello || head->request < c->first_hello ||
        head->request > c->last_hello)
        return;
    if (head->request != c->last_hello) {
        c->hello_due_ms = now + HELLO_LATE_MS;
        return;
    }
    if (head->status == DT_OK)
        accept_hello(c, head, now);
    else
        refused_hello(c, head, now);
}

void
recover_goodbye(struct connection *c, const struct dt_head *head, int64_t now)
{
    struct dtw_client *client = c->task->client;
    struct dt_buffer header = {0};

    if (head->session != c->session)
        return;
    dt_simple_encode(&header, DT_OP_GOODBYE, ++client->next_request, c->session);
    if (!header.failed)
        dt_dealer_send(c->dealer, header.data, header.len, NULL, 0);
    dt_buffer_deinit(&header);
    if (c->shard == 0)
        client_log(client, DTW_LOG_NOTICE, "ps task %u at %s is shutting down", c->task->index,
                   c->task->endpoint);
    if (c->state == CONNECTION_READY)
        recover_start(c, now + HELLO_EACH_MS);
}

static bool
is_task_ready(const struct task *t)
{
    uint32_t i;

    for (i = 0; i < t->n_shards; i++) {
        if (!t->shards[i] || t->shards[i]->state != CONNECTION_READY)
            return false;
    }
    return t->n_shards > 0;
}

void
client_update_ready(struct dtw_client *client)
{
    bool ready = true;
    uint32_t i;

    for (i = 0; i < client->n_tasks; i++)
        ready = is_task_ready(&client->tasks[i]) && ready;
    if (ready && !client->ready)
        driver_news(&client->driver);
    client->ready = ready;
}

/* One ps task has been away for a lease: the others must not go on counting this worker. */
static bool
must_be_silent(const struct dtw_client *client, int64_t now)
{
    uint32_t i;

    for (i = 0; i < client->n_tasks; i++) {
        const struct task *t = &client->tasks[i];

        if (t->n_shards > 0 && !is_task_ready(t) && now >= t->heard_ms + client->params.lease_ms)
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
        send_hello(c, now);
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

    if (is_task_ready(t)) {
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
recover_tick(struct dtw_client *client, int64_t now)
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
recover_is_busy(const struct dtw_client *client)
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
