/*
 * connection.c - one shard: DEALER, ordered list of outstanding messages, window.
 *
 * Invariants: `unsent` and all behind it have not been sent in this session; n_in_flight and
 * bytes_in_flight are sums over the messages with in_flight, n_parked over those with parked.
 * Lock and driver token held.
 */
#include "worker/lib/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "worker/lib/message.h"

#define FIRST_WINDOW 64 /* for the socket's marks, until HELLO's reply tells the window */

struct connection *
connection_create(struct task *task, uint32_t shard, const char *endpoint)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->waiting = calloc(1, sizeof(*c->waiting));
    if (!c->waiting) {
        free(c);
        return NULL;
    }
    c->task = task;
    c->shard = shard;
    c->window = FIRST_WINDOW;
    c->heartbeat_ms = -1;
    snprintf(c->endpoint, sizeof(c->endpoint), "%s", endpoint);
    return c;
}

void
connection_destroy(struct connection *c)
{
    struct message *m, *next;

    if (!c)
        return;
    DL_FOREACH_SAFE(c->list, m, next)
    {
        DL_DELETE(c->list, m);
        message_destroy(m);
    }
    connection_close(c);
    free(c->waiting);
    free(c);
}

void
connection_close(struct connection *c)
{
    dt_dealer_destroy(c->dealer, 0);
    c->dealer = NULL;
}

bool
connection_reconnect(struct connection *c, int64_t now)
{
    struct dtw_client *client = c->task->client;
    struct dt_error err;
    uint32_t window = c->window > FIRST_WINDOW ? c->window : FIRST_WINDOW;

    connection_close(c);
    c->heartbeat_ms = -1;
    c->dealer_ms = c->heard_ms = now;
    c->dealer = dt_dealer_create(client->context, c->endpoint, window, &err);
    if (c->dealer)
        return true;
    client_fatal(client, client_status(err.code), "%s", err.text);
    return false;
}

/* What the next forward pass needs first: m before the first that waits of a later variable of its step. From the end,
 * for most come in order: those of a step that wait are in the order of variables. */
static struct message *
overtaken(const struct connection *c, const struct message *m)
{
    struct message *e = c->unsent ? c->list->prev : NULL, *late = NULL;

    while (e && (e->handle != m->handle || e->whole > m->whole)) {
        if (e->handle == m->handle)
            late = e;
        e = e == c->unsent ? NULL : e->prev;
    }
    return late;
}

void
connection_add(struct connection *c, struct message *m)
{
    struct message *late = overtaken(c, m);

    if (late)
        DL_PREPEND_ELEM(c->list, late, m);
    else
        DL_APPEND(c->list, m);
    if (c->unsent == late)
        c->unsent = m;
}

static bool
has_room(const struct connection *c, const struct message *m)
{
    if (c->n_in_flight == 0)
        return true;
    return c->n_in_flight < c->window &&
           c->bytes_in_flight + m->out_bytes + m->in_bytes <= c->window_bytes;
}

static void
take_place(struct connection *c, struct message *m)
{
    m->in_flight = true;
    c->n_in_flight++;
    c->bytes_in_flight += m->out_bytes + m->in_bytes;
}

static void
give_place(struct connection *c, struct message *m)
{
    if (!m->in_flight)
        return;
    m->in_flight = false;
    c->n_in_flight--;
    c->bytes_in_flight -= m->out_bytes + m->in_bytes;
}

static void
unpark(struct connection *c, struct message *m)
{
    if (!m->parked)
        return;
    m->parked = false;
    c->n_parked--;
}

void
connection_flush(struct connection *c)
{
    c->full = false;
    while (c->state == CONNECTION_READY && c->unsent && has_room(c, c->unsent)) {
        struct message *m = c->unsent;

        if (message_send(m) != DT_SENT) {
            c->full = true;
            return;
        }
        m->sent = true;
        take_place(c, m);
        c->unsent = m->next;
    }
}

struct message *
connection_find(struct connection *c, uint64_t request)
{
    struct message *m;

    DL_FOREACH(c->list, m)
    {
        if (m->id == request)
            return m->sent ? m : NULL;
    }
    return NULL;
}

void
connection_park(struct connection *c, struct message *m, int64_t now)
{
    give_place(c, m);
    if (!m->handle) {
        connection_finish(c, m);
        return;
    }
    if (m->parked)
        return;
    m->parked = true;
    if (c->n_parked++ == 0)
        c->parked_ms = now;
}

void
connection_finish(struct connection *c, struct message *m)
{
    give_place(c, m);
    unpark(c, m);
    if (c->unsent == m)
        c->unsent = m->next;
    DL_DELETE(c->list, m);
    message_destroy(m);
}

void
connection_abandon(struct connection *c, const struct dtw_handle *handle)
{
    struct message *m, *next;

    DL_FOREACH_SAFE(c->list, m, next)
    {
        if (m->handle != handle)
            continue;
        m->handle = NULL;
        if (!m->in_flight)
            connection_finish(c, m);
    }
}

void
connection_rewind(struct connection *c)
{
    struct message *m, *next;

    DL_FOREACH_SAFE(c->list, m, next)
    {
        give_place(c, m);
        unpark(c, m);
        m->sent = false;
        if (!m->handle)
            connection_finish(c, m);
    }
    c->unsent = c->list;
    memset(c->waiting, 0, sizeof(*c->waiting));
}

void
connection_heartbeat(struct connection *c, int64_t now)
{
    struct dtw_client *client = c->task->client;
    struct dt_buffer header = {0};

    c->heartbeat_due_ms = now + client->params.lease_ms / 4;
    dt_heartbeat_encode(&header, ++client->next_request, c->session);
    if (!header.failed && dt_dealer_send(c->dealer, header.data, header.len, NULL, 0) == DT_SENT &&
        c->heartbeat_ms < 0)
        c->heartbeat_ms = now;
    dt_buffer_deinit(&header);
}
