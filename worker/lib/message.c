/*
 * message.c - one request on one connection. Lock held; message_send with the token as well.
 */
#include "worker/lib/message.h"

#include <stdlib.h>

#include "proto/wire/declare.h"
#include "proto/wire/stats.h"
#include "worker/lib/handle.h"

struct message *
message_create(struct connection *connection, enum dt_op op, uint32_t max_items)
{
    struct message *m = calloc(1, sizeof(*m) + max_items * sizeof(m->items[0]));

    if (!m)
        return NULL;
    m->connection = connection;
    m->op = op;
    m->id = ++connection->task->client->next_request;
    m->body.limit = DT_MAX_BODY_BYTES;
    return m;
}

void
message_destroy(struct message *m)
{
    if (!m)
        return;
    dt_buffer_deinit(&m->body);
    free(m);
}

static void
encode_data(const struct message *m, struct dt_buffer *b)
{
    struct dt_data data;
    uint32_t i;

    data.counter = m->counter;
    data.weight = m->weight;
    data.clock = m->clock;
    data.count = m->count;
    data.n_items = m->n_items;
    for (i = 0; i < m->n_items; i++) {
        data.items[i].variable = m->items[i].variable;
        data.items[i].slice = m->items[i].slice;
        data.items[i].version = m->items[i].version;
        data.items[i].want = m->items[i].want;
    }
    dt_data_encode(b, m->op, m->id, m->connection->session, &data);
}

static void
encode(const struct message *m, struct dt_buffer *b)
{
    uint64_t session = m->connection->session;

    switch ((int)m->op) {
    case DT_OP_JOIN:
    case DT_OP_LEAVE:
    case DT_OP_WAIT_STEP:
        dt_step_encode(b, m->op, m->id, session, m->step);
        break;
    case DT_OP_CLOCK:
        dt_clock_encode(b, m->id, session, m->step, m->clock);
        break;
    case DT_OP_INIT_DONE:
        dt_init_done_encode(b, m->id, session, &m->init_done);
        break;
    case DT_OP_SET: {
        struct dt_set set = {.key = "stop_step", .value = m->step};

        dt_set_encode(b, m->id, session, &set);
        break;
    }
    case DT_OP_DECLARE:
        dt_declare_encode(b, m->id, session);
        break;
    case DT_OP_STATS:
        dt_simple_encode(b, m->op, m->id, session);
        break;
    default:
        encode_data(m, b);
        break;
    }
}

static uint32_t
lend_frames(struct message *m, struct dt_out_frame *frames)
{
    uint32_t i, n = 0;

    if (m->body.len)
        frames[n++] = (struct dt_out_frame){m->body.data, m->body.len, NULL, NULL};
    for (i = 0; i < m->n_items && m->items[i].out; i++) {
        frames[n++] = (struct dt_out_frame){m->items[i].out, m->items[i].n * sizeof(float),
                                            handle_release, m->handle};
        atomic_fetch_add_explicit(&m->handle->holds, 1, memory_order_relaxed);
    }
    return n;
}

enum dt_sent
message_send(struct message *m)
{
    struct dt_out_frame frames[DT_MAX_ITEMS];
    struct dt_buffer header = {0};
    enum dt_sent sent = DT_SENT_FULL;

    encode(m, &header);
    if (!header.failed) {
        uint32_t n = lend_frames(m, frames);

        sent = dt_dealer_send(m->connection->dealer, header.data, header.len, frames, n);
    }
    dt_buffer_deinit(&header);
    return sent;
}
