/*
 * router.c - a ROUTER socket with the fixed options, and sending by reference.
 *
 * Invariants: a metered message is released exactly once, when libzmq has let go of its last frame;
 * each block's reference likewise. All calls by the router's thread; on_free may run on an I/O thread
 * and does atomic decrements and at most one write to an eventfd (meter.h).
 */
#include "proto/net/router.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "proto/net/ipc.h"
#include "proto/net/outgoing.h"

struct sent_frame {
    struct sent *sent;
    struct dt_block *block; /* shared; NULL: the bytes are in the record */
};

struct sent { /* of one message; freed with its last frame */
    atomic_uint n_left;
    struct dt_meter *meter; /* shared, may be NULL */
    size_t bytes;           /* of payload, as metered */
    unsigned n;
    unsigned char *copies; /* behind the frames: header and payloads without a block */
    struct sent_frame frames[];
};

static int
configure(void *socket, const struct dt_router_options *options)
{
    uint64_t affinity = UINT64_C(1) << options->io_thread % 64;

    if (dt_socket_set_common(socket, dt_hwm(options->window)) != 0 ||
        dt_socket_set(socket, ZMQ_ROUTER_MANDATORY, 1) != 0 ||
        dt_socket_set(socket, ZMQ_BACKLOG, 512) != 0 ||
        zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, sizeof(affinity)) != 0)
        return -1;
    return zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "psd", 3);
}

struct dt_router *
dt_router_create(struct dt_context *context, const struct dt_router_options *options,
                 struct dt_error *err)
{
    struct dt_router *r = calloc(1, sizeof(*r));

    if (!r) {
        dt_fail(err, DT_E_NO_MEMORY, "no memory for a server socket");
        return NULL;
    }
    if (dt_socket_open(&r->socket, context, ZMQ_ROUTER) == 0 &&
        configure(r->socket.zmq, options) == 0)
        return r;
    dt_fail(err, r->socket.zmq ? DT_E_INTERNAL : DT_E_UNAVAILABLE,
            "cannot create a server socket: %s", zmq_strerror(zmq_errno()));
    dt_router_destroy(r);
    return NULL;
}

void
dt_router_destroy(struct dt_router *router)
{
    if (!router)
        return;
    if (router->socket.zmq)
        zmq_close(router->socket.zmq);
    dt_ipc_release(router->locks);
    free(router);
}

void
dt_router_linger(struct dt_router *router, int ms)
{
    dt_socket_set(router->socket.zmq, ZMQ_LINGER, ms);
}

enum dt_status
dt_router_recv(struct dt_router *router, struct dt_message *message)
{
    return dt_message_recv(&router->socket, true, message);
}

static void
sent_destroy(struct sent *s)
{
    if (s->meter) {
        dt_meter_release(s->meter, s->bytes);
        dt_meter_unref(s->meter);
    }
    free(s);
}

static void
on_free(void *data, void *hint)
{
    struct sent_frame *f = hint;
    struct sent *s = f->sent;

    (void)data;
    dt_block_unref(f->block);
    if (atomic_fetch_sub_explicit(&s->n_left, 1, memory_order_acq_rel) == 1)
        sent_destroy(s);
}

/* The record holds one reference of its own in n_left until the message is built and sent. */
static struct sent *
sent_create(size_t header_bytes, const struct dt_payload *payload, uint32_t n_payload,
            struct dt_meter *meter)
{
    size_t bytes = 0, copied = header_bytes;
    size_t fixed = sizeof(struct sent) + (n_payload + 1) * sizeof(struct sent_frame);
    struct sent *s;
    uint32_t i;

    for (i = 0; i < n_payload; i++) {
        bytes += payload[i].bytes;
        copied += payload[i].block ? 0 : payload[i].bytes;
    }
    s = malloc(fixed + copied);
    if (!s) {
        if (meter)
            dt_meter_release(meter, bytes);
        return NULL;
    }
    atomic_init(&s->n_left, 1);
    s->meter = meter ? dt_meter_ref(meter) : NULL;
    s->bytes = bytes;
    s->n = 0;
    s->copies = (unsigned char *)s + fixed;
    return s;
}

static void
sent_unref(struct sent *s)
{
    if (atomic_fetch_sub_explicit(&s->n_left, 1, memory_order_acq_rel) == 1)
        sent_destroy(s);
}

static bool
lend(struct dt_outgoing *out, struct sent *s, struct dt_block *block, const void *data,
     size_t bytes)
{
    struct sent_frame *f = &s->frames[s->n++];

    *f = (struct sent_frame){s, block ? dt_block_ref(block) : NULL};
    atomic_fetch_add_explicit(&s->n_left, 1, memory_order_relaxed);
    if (dt_outgoing_lend(out, data, bytes, on_free, f))
        return true;
    on_free(NULL, f);
    return false;
}

static bool
build(struct dt_outgoing *out, struct sent *s, const void *header, size_t bytes,
      const struct dt_payload *payload, uint32_t n_payload)
{
    unsigned char *copy = s->copies;
    uint32_t i;

    memcpy(copy, header, bytes);
    if (!lend(out, s, NULL, copy, bytes))
        return false;
    copy += bytes;
    for (i = 0; i < n_payload; i++) {
        const struct dt_payload *p = &payload[i];
        bool ok;

        if (p->bytes == 0) {
            ok = dt_outgoing_copy(out, NULL, 0);
        } else if (p->block) {
            ok = lend(out, s, p->block, p->block->data, p->bytes);
        } else {
            memcpy(copy, p->data, p->bytes);
            ok = lend(out, s, NULL, copy, p->bytes);
            copy += p->bytes;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* A message without payload and meter needs no record. */
static enum dt_sent
send_small(struct dt_outgoing *out, struct dt_router *router, const void *header, size_t bytes)
{
    if (dt_outgoing_copy(out, header, bytes))
        return dt_outgoing_send(out, &router->socket);
    dt_outgoing_discard(out);
    return DT_SENT_FULL;
}

enum dt_sent
dt_router_send(struct dt_router *router, const struct dt_route *to, const void *header,
               size_t bytes, const struct dt_payload *payload, uint32_t n_payload,
               struct dt_meter *meter)
{
    struct dt_outgoing out;
    enum dt_sent result = DT_SENT_FULL;
    struct sent *s;

    out.n = 0;
    if (!meter && n_payload == 0) {
        if (!dt_outgoing_copy(&out, to->id, to->len))
            return DT_SENT_FULL;
        return send_small(&out, router, header, bytes);
    }
    s = sent_create(bytes, payload, n_payload, meter);
    if (!s)
        return DT_SENT_FULL;
    if (n_payload <= DT_MAX_ITEMS && dt_outgoing_copy(&out, to->id, to->len) &&
        build(&out, s, header, bytes, payload, n_payload))
        result = dt_outgoing_send(&out, &router->socket);
    else
        dt_outgoing_discard(&out);
    sent_unref(s);
    return result;
}
