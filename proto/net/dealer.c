/*
 * dealer.c - a client's DEALER socket to one shard.
 *
 * Invariant: a lent frame's release function is called exactly once, by libzmq when it lets go of the
 * memory or here when nothing was sent. Driven by one thread at a time; release functions may run on
 * an I/O thread.
 */
#include "proto/net/dealer.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "proto/base/descriptors.h"
#include "proto/net/endpoint.h"
#include "proto/net/ipc.h"
#include "proto/net/outgoing.h"

#define SOCKET_DESCRIPTORS 2 /* its own, and the connection: libzmq says nothing when that fails */
#define MIN_HWM 1000
#define RECONNECT_MS 100
#define RECONNECT_MAX_MS 2000
#define HEARTBEAT_MS 5000
#define HEARTBEAT_TIMEOUT_MS 15000
#define HEARTBEAT_TTL_MS 20000

struct lent_frame {
    struct lent *lent;
    dt_release_fn *release;
    void *arg;
};

struct lent { /* of one message; freed with its last frame */
    atomic_uint n_left;
    struct lent_frame frames[];
};

/* libzmq resolves to IPv6 alone when ZMQ_IPV6 is on: off where the host has an IPv4 address. It still
 * resolves anew with each reconnect. */
static bool
has_ipv4(const struct dt_endpoint *e)
{
    struct addrinfo *list, *a;
    bool found = false;

    if (e->is_ipc || dt_endpoint_lookup(e, &list, NULL) != DT_OK)
        return false;
    for (a = list; a; a = a->ai_next)
        found = found || a->ai_family == AF_INET;
    freeaddrinfo(list);
    return found;
}

/* Only this side sends heartbeats, and the server cuts a peer whose own are late by their TTL. If the server
 * sent them, too, each answer would let libzmq walk through the timers of all connections (seen: a quarter
 * of psd's time with 2 000 of them, all idle). */
static int
set_heartbeats(void *socket)
{
    return dt_socket_set(socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS) != 0 ||
                   dt_socket_set(socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS) != 0 ||
                   dt_socket_set(socket, ZMQ_HEARTBEAT_TTL, HEARTBEAT_TTL_MS) != 0
               ? -1
               : 0;
}

static int
configure(void *socket, uint32_t window, const struct dt_endpoint *e)
{
    int hwm = dt_hwm(window);

    if (dt_socket_set_common(socket, hwm < MIN_HWM ? MIN_HWM : hwm) != 0 ||
        set_heartbeats(socket) != 0 ||
        dt_socket_set(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) != 0 ||
        dt_socket_set(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) != 0)
        return -1;
    return has_ipv4(e) ? dt_socket_set(socket, ZMQ_IPV6, 0) : 0;
}

static enum dt_status
open_socket(struct dt_dealer *d, struct dt_context *context, const char *endpoint, uint32_t window,
            struct dt_error *err)
{
    struct dt_endpoint e;
    enum dt_status status = dt_endpoint_split(endpoint, &e, err);

    if (status != DT_OK)
        return status;
    if (e.is_ipc && strlen(e.path) > DT_IPC_PATH_BYTES)
        return dt_fail(err, DT_E_RESOLVE, "ipc path %s is longer than %d bytes", e.path,
                       DT_IPC_PATH_BYTES);
    status = dt_descriptors_check(SOCKET_DESCRIPTORS, endpoint, err);
    if (status != DT_OK)
        return status;
    if (dt_socket_open(&d->socket, context, ZMQ_DEALER) != 0)
        return dt_fail(err, DT_E_UNAVAILABLE, "cannot create a socket for %s: %s", endpoint,
                       zmq_strerror(errno));
    if (configure(d->socket.zmq, window, &e) != 0)
        return dt_fail(err, DT_E_INTERNAL, "cannot set the options of the socket for %s: %s",
                       endpoint, zmq_strerror(errno));
    if (zmq_connect(d->socket.zmq, endpoint) != 0)
        return dt_fail(err, DT_E_RESOLVE, "cannot connect to %s: %s", endpoint,
                       zmq_strerror(errno));
    return DT_OK;
}

struct dt_dealer *
dt_dealer_create(struct dt_context *context, const char *endpoint, uint32_t window,
                 struct dt_error *err)
{
    struct dt_dealer *d = calloc(1, sizeof(*d));

    if (!d) {
        dt_fail(err, DT_E_NO_MEMORY, "no memory for the connection to %s", endpoint);
        return NULL;
    }
    if (open_socket(d, context, endpoint, window, err) == DT_OK)
        return d;
    dt_dealer_destroy(d, 0);
    return NULL;
}

void
dt_dealer_destroy(struct dt_dealer *dealer, int linger_ms)
{
    if (!dealer)
        return;
    if (dealer->socket.zmq) {
        dt_socket_set(dealer->socket.zmq, ZMQ_LINGER, linger_ms > 0 ? linger_ms : 0);
        zmq_close(dealer->socket.zmq);
    }
    free(dealer);
}

static void
on_free(void *data, void *hint)
{
    struct lent_frame *f = hint;
    struct lent *lent = f->lent;

    (void)data;
    f->release(f->arg);
    if (atomic_fetch_sub_explicit(&lent->n_left, 1, memory_order_acq_rel) == 1)
        free(lent);
}

static bool
add_frame(struct dt_outgoing *out, struct lent *lent, const struct dt_out_frame *from)
{
    struct lent_frame *f;

    if (!from->release)
        return dt_outgoing_copy(out, from->data, from->bytes);
    f = &lent->frames[atomic_load_explicit(&lent->n_left, memory_order_relaxed)];
    *f = (struct lent_frame){lent, from->release, from->arg};
    atomic_fetch_add_explicit(&lent->n_left, 1, memory_order_relaxed);
    if (dt_outgoing_lend(out, from->data, from->bytes, on_free, f))
        return true;
    atomic_fetch_sub_explicit(&lent->n_left, 1, memory_order_relaxed);
    return false;
}

/* No memory: frames from `first` on were not given to libzmq. */
static enum dt_sent
give_up(struct dt_outgoing *out, struct lent *lent, const struct dt_out_frame *frames,
        uint32_t first, uint32_t n)
{
    bool empty = !lent || atomic_load_explicit(&lent->n_left, memory_order_relaxed) == 0;
    uint32_t i;

    for (i = first; i < n; i++) {
        if (frames[i].release)
            frames[i].release(frames[i].arg);
    }
    if (empty)
        free(lent);
    dt_outgoing_discard(out); /* frees `lent` with its last frame */
    return DT_SENT_FULL;
}

enum dt_sent
dt_dealer_send(struct dt_dealer *dealer, const void *header, size_t bytes,
               const struct dt_out_frame *frames, uint32_t n_frames)
{
    struct dt_outgoing out;
    struct lent *lent = NULL;
    uint32_t i, n_lent = 0;

    out.n = 0;
    for (i = 0; i < n_frames; i++)
        n_lent += frames[i].release != NULL;
    if (n_lent) {
        lent = malloc(sizeof(*lent) + n_lent * sizeof(lent->frames[0]));
        if (lent)
            atomic_init(&lent->n_left, 0);
    }
    if ((n_lent && !lent) || n_frames > DT_MAX_ITEMS || !dt_outgoing_copy(&out, header, bytes))
        return give_up(&out, lent, frames, 0, n_frames);
    for (i = 0; i < n_frames; i++) {
        if (!add_frame(&out, lent, &frames[i]))
            return give_up(&out, lent, frames, i, n_frames);
    }
    return dt_outgoing_send(&out, &dealer->socket);
}

enum dt_status
dt_dealer_recv(struct dt_dealer *dealer, struct dt_message *message)
{
    return dt_message_recv(&dealer->socket, false, message);
}

bool
dt_dealer_may_have(const struct dt_dealer *dealer)
{
    return dealer->socket.unread;
}
