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
#define HELLO_FIRST_EACH_MS 100

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

void
recover_say_hello(struct connection *c, int64_t now)
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
        if (i < m->n_shards && client_uses_shard(t->client, i, m->n_shards)) {
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
    if (c->state != CONNECTION_READY)
        return; /* psd repeats it until it is answered */
    if (c->shard == 0)
        client_log(client, DTW_LOG_NOTICE, "ps task %u at %s is shutting down", c->task->index,
                   c->task->endpoint);
    recover_start(c, now + HELLO_EACH_MS);
}
