/*
 * router.h - a ROUTER socket with the fixed option set of CONTRACT section 3, and its frames.
 * proto/net is the only place that names zmq_.
 *
 * Thread rule: one thread a router. No call blocks.
 */
#ifndef DT_NET_ROUTER_H
#define DT_NET_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/block.h"
#include "proto/base/error.h"
#include "proto/base/frame.h"
#include "proto/base/meter.h"
#include "proto/net/context.h"
#include "proto/wire/limits.h"

/* A received message. Frames stay valid until dt_message_deinit. */
struct dt_message {
    struct dt_route route;
    struct dt_span header;
    uint32_t n_frames; /* payload frames behind the header, at most DT_MAX_ITEMS */
    struct dt_span frames[DT_MAX_ITEMS];
    bool
        overflow; /* it had more frames, or a routing id that is too long: read to its end, to be refused */
    void *private_frames; /* zmq_msg_t array, owned */
};

struct dt_router;
struct dt_dealer;

struct dt_router_options {
    uint32_t window;    /* SNDHWM = RCVHWM = 2 * (3 * window + 16); see dt_hwm */
    bool local;         /* ipc and loopback class (reserved for CURVE later) */
    unsigned io_thread; /* of the context's: its connections are read and written there */
};

struct dt_router *dt_router_create(struct dt_context *context,
                                   const struct dt_router_options *options, struct dt_error *err);
void dt_router_destroy(
    struct dt_router *
        router); /* LINGER 0 or what dt_router_linger set; releases ipc locks; unlinks socket files */
void dt_router_linger(struct dt_router *router, int ms);

/* Bind. `endpoint` is tcp://HOST:PORT (PORT may be 0 or *), ipc://PATH. The bound endpoint is
 * written to `bound`. For ipc: PATH.lock is created and locked first (flock; DT_E_ADDRESS_IN_USE with
 * the owner's pid when held); a stale socket file is taken over; mode 0660 when `mode` says so.
 * DT_E_ADDRESS_IN_USE, DT_E_RESOLVE, DT_E_CANT_CREATE, DT_E_DENIED. */
enum dt_status dt_router_bind(struct dt_router *router, const char *endpoint, unsigned mode,
                              char bound[DT_MAX_ENDPOINT + 1], struct dt_error *err);

/* One whole message. DT_OK, or DT_E_TIMEOUT when there is none now. EINTR is handled. */
enum dt_status dt_router_recv(struct dt_router *router, struct dt_message *message);
void dt_message_deinit(struct dt_message *message);
/* The connection that brought it gets a send buffer of 1 MiB, or what net.core.wmem_max allows, if it is a unix socket:
 * those come with 208 KiB, and each time that is full the two ends take turns on the processors (tcp's grow by
 * themselves). Returns the buffer's bytes as the kernel counts them, 0 for others. Once, when a session begins. */
int dt_message_widen(const struct dt_message *message);

/* Header and payload frames to one peer, DONTWAIT. `meter` (may be NULL): the caller has called
 * dt_meter_add for the message's payload bytes; a release follows when libzmq has let go of every
 * frame (at once if the send is refused). The release counts one message. */
enum dt_sent dt_router_send(struct dt_router *router, const struct dt_route *to, const void *header,
                            size_t bytes, const struct dt_payload *payload, uint32_t n_payload,
                            struct dt_meter *meter);

/* Poll several sockets and plain descriptors together. */
struct dt_poll_item {
    struct dt_router *router; /* or NULL and fd */
    struct dt_dealer *dealer;
    int fd;
    bool ready; /* out; of a socket: try to receive, there may be nothing */
};
/* Waits until one is readable, the time-out (ms) passes or a signal arrives. DT_OK always but for DT_E_INTERNAL. */
enum dt_status dt_poll(struct dt_poll_item *items, unsigned n, int timeout_ms);

#endif
