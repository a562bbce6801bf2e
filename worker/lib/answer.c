/*
 * answer.c - what psd sends. Nothing in a reply is trusted: counts, sizes and versions are checked
 * before a byte goes into the application's buffers. Lock and driver token held.
 */
#include "worker/lib/answer.h"

#include <stdio.h>
#include <string.h>

#include "proto/wire/data.h"
#include "worker/lib/handle.h"
#include "worker/lib/recover.h"

static bool
is_pull(enum dt_op op)
{
    return op == DT_OP_PULL || op == DT_OP_PUSHPULL;
}

static void
illegal(struct message *m, const char *what)
{
    struct connection *c = m->connection;
    struct dtw_handle *h = m->handle;
    char text[DT_MAX_TEXT + 1];

    snprintf(text, sizeof(text), "ps task %u at %s: an illegal reply to %s (%s)", c->task->index,
             c->endpoint, dt_op_name(m->op), what);
    handle_finish(h, DTW_PROTOCOL, DT_E_PROTOCOL, text);
}

static const char *
check_pulled(const struct message *m, const struct dt_data_reply *r,
             const struct dt_message *message)
{
    uint32_t i;

    if (message->n_frames != m->n_items)
        return "another number of frames";
    for (i = 0; i < m->n_items; i++) {
        if (!r->items[i].modified)
            return "no values";
        if (message->frames[i].bytes != m->items[i].n * sizeof(float))
            return "values of another size";
        if (r->items[i].version == DT_NO_VERSION ||
            (r->items[i].version < m->items[i].want && !client_is_ssp(m->connection->task->client)))
            return "values that are too old";
    }
    return NULL;
}

static const char *
check_data(const struct message *m, const struct dt_data_reply *r, const struct dt_message *message)
{
    uint32_t i;

    if (r->n_items != m->n_items)
        return "another number of slices";
    for (i = 0; i < m->n_items && m->op != DT_OP_PULL; i++) {
        if (r->items[i].fate == DT_FATE_NONE || r->items[i].fate > DT_FATE_REFUSED)
            return "an unknown fate";
    }
    return is_pull(m->op) ? check_pulled(m, r, message) : NULL;
}

static void
count_fate(struct dtw_result *result, unsigned fate)
{
    switch (fate) {
    case DT_FATE_APPLIED:
    case DT_FATE_ACCUMULATED:
        result->accumulated++;
        break;
    case DT_FATE_STALE:
        result->stale++;
        break;
    case DT_FATE_DUPLICATE:
        result->duplicate++;
        break;
    default:
        result->refused++;
        break;
    }
}

/* An update that was applied made one version of those since the pull; the others are its staleness. */
static void
note_staleness(struct dtw_result *result, const struct message_item *it,
               const struct dt_data_result *r)
{
    uint64_t age;

    if (r->fate != DT_FATE_APPLIED || !it->out || r->push_version <= it->version)
        return;
    atomic_store_explicit(it->version_made, r->push_version, memory_order_relaxed);
    age = r->push_version - it->version - 1;
    if (age > result->staleness)
        result->staleness = age;
}

static void
take_data(struct message *m, const struct dt_data_reply *r, const struct dt_message *message)
{
    struct dtw_result *result = &m->handle->result;
    uint32_t i;

    result->approximate = result->approximate || r->approximate;
    for (i = 0; i < m->n_items; i++) {
        const struct message_item *it = &m->items[i];

        if (m->op != DT_OP_PULL)
            count_fate(result, r->items[i].fate);
        note_staleness(result, it, &r->items[i]);
        if (!is_pull(m->op))
            continue;
        memcpy(it->in, message->frames[i].p, message->frames[i].bytes);
        atomic_store_explicit(it->version_held, r->items[i].version, memory_order_relaxed);
        if (r->items[i].version > result->step)
            result->step = r->items[i].version;
    }
}

static bool
answer_data(struct message *m, struct dt_head *head, const struct dt_message *message)
{
    struct dt_data_reply r;
    const char *wrong;

    if (m->op == DT_OP_INIT)
        return true;
    if (dt_data_reply_decode(head, &r) != DT_OK) {
        illegal(m, "malformed");
        return false;
    }
    wrong = check_data(m, &r, message);
    if (wrong) {
        illegal(m, wrong);
        return false;
    }
    take_data(m, &r, message);
    stepwise_answered(m->handle, m->whole);
    return true;
}

static bool
answer_control(struct message *m, struct dt_head *head, const struct dt_message *message)
{
    struct control_reply *reply = &m->handle->control[m->connection->task->index];
    struct dt_step_msg step;

    if (m->op == DT_OP_JOIN || m->op == DT_OP_INIT_DONE || m->op == DT_OP_CLOCK ||
        m->op == DT_OP_SET) {
        if (dt_step_decode(head, &step) != DT_OK) {
            illegal(m, "malformed");
            return false;
        }
        reply->value = step.step;
        if (m->op == DT_OP_CLOCK || m->op == DT_OP_SET)
            atomic_store_explicit(&m->handle->client->stop_step, step.step, memory_order_relaxed);
    }
    if (m->op == DT_OP_DECLARE || m->op == DT_OP_STATS) {
        if (message->n_frames != 1) {
            illegal(m, "one body frame is expected");
            return false;
        }
        dt_buffer_clear(&reply->body);
        if (!dt_buffer_append(&reply->body, message->frames[0].p, message->frames[0].bytes)) {
            handle_finish(m->handle, DTW_NO_MEMORY, DT_E_NO_MEMORY, NULL);
            return false;
        }
    }
    return true;
}

static void
refused(struct message *m, const struct dt_head *head)
{
    struct connection *c = m->connection;
    char text[2 * DT_MAX_TEXT];

    snprintf(text, sizeof(text), "ps task %u at %s, %s: %s", c->task->index, c->task->endpoint,
             dt_op_name(m->op), head->text[0] ? head->text : dt_status_text(head->status));
    handle_finish(m->handle, client_status(head->status), head->status, text);
}

/* The final reply. Afterwards the message is gone. */
static void
answer_final(struct connection *c, struct message *m, struct dt_head *head,
             const struct dt_message *message, int64_t now)
{
    struct dtw_handle *h = m->handle;
    bool good = true;

    if (h && (head->status == DT_OK || (head->status == DT_R_LEFT && m->op == DT_OP_LEAVE))) {
        if (m->op == DT_OP_INIT || m->op >= DT_OP_PUSH)
            good = answer_data(m, head, message);
        else if (m->op != DT_OP_LEAVE)
            good = answer_control(m, head, message);
        if (good) {
            connection_finish(c, m);
            handle_answered(h, now);
            return;
        }
    } else if (h) {
        refused(m, head);
    }
    /* The handle has ended and given the message up; its place in the window is free now. */
    m = connection_find(c, head->request);
    if (m)
        connection_finish(c, m);
}

static void
hear_waiting(struct connection *c, struct dt_head *head)
{
    struct dt_waiting w;

    if (dt_waiting_decode(head, &w) == DT_OK && w.reason != DT_WAIT_NOTHING)
        *c->waiting = w;
}

static void
answer_request(struct connection *c, struct dt_head *head, const struct dt_message *message,
               int64_t now)
{
    struct message *m = connection_find(c, head->request);

    if (!m || head->op != ((unsigned)m->op | DT_REPLY_BIT))
        return; /* of a request that was given up */
    if (head->status == DT_PARKED) {
        hear_waiting(c, head);
        connection_park(c, m, now);
    } else if (head->status != DT_R_GOING_DOWN) {
        answer_final(c, m, head, message, now);
    }
}

static void
answer_session(struct connection *c, struct dt_head *head, const struct dt_message *message,
               int64_t now)
{
    struct task *t = c->task;

    if (head->session != c->session)
        return;
    if (t->index == 0 && c->shard == 0 && (head->status == DT_OK || head->status == DT_PARKED))
        atomic_store_explicit(&t->client->global_step, head->step, memory_order_relaxed);
    if (head->status == DT_R_HELLO_REQUIRED) {
        if (c->state == CONNECTION_READY)
            recover_start(c, now);
        return;
    }
    if (head->status == DT_R_JOB_FAILED)
        client_fatal(t->client, DTW_JOB_FAILED, "%s",
                     head->text[0] ? head->text : "the job failed");
    if (head->op == (DT_OP_HEARTBEAT | DT_REPLY_BIT)) {
        c->heartbeat_ms = -1;
        hear_waiting(c, head);
        return;
    }
    answer_request(c, head, message, now);
}

static void
answer_hello(struct connection *c, struct dt_head *head, const struct dt_message *message,
             int64_t now)
{
    dt_message_widen(message);
    recover_hello_reply(c, head, now);
}

void
answer_take(struct connection *c, const struct dt_message *message, int64_t now)
{
    struct dt_head head;
    enum dt_status status = dt_head_decode(&head, message->header.p, message->header.bytes);

    if (status == DT_R_VERSION) {
        client_fatal(c->task->client, DTW_PROTOCOL,
                     "ps task %u at %s speaks protocol version %u, this library version %u",
                     c->task->index, c->endpoint, head.version, DT_PROTOCOL_VERSION);
        return;
    }
    if (status != DT_OK || message->overflow || !(head.op & DT_REPLY_BIT)) {
        client_fatal(c->task->client, DTW_PROTOCOL, "ps task %u at %s sent an illegal message",
                     c->task->index, c->endpoint);
        return;
    }
    c->heard_ms = c->task->heard_ms = now;
    if (head.op == (DT_OP_GOODBYE | DT_REPLY_BIT))
        recover_goodbye(c, &head, now);
    else if (head.op == (DT_OP_HELLO | DT_REPLY_BIT))
        answer_hello(c, &head, message, now);
    else
        answer_session(c, &head, message, now);
}
