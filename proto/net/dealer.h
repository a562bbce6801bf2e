/*
 * dealer.h - a client's DEALER socket to one shard.
 *
 * Thread rule: used by one thread at a time; may pass between threads with a full fence (the
 * library's driver token). No call blocks.
 */
#ifndef DT_NET_DEALER_H
#define DT_NET_DEALER_H

#include "proto/net/router.h"

struct dt_dealer;

/* Creates and connects (asynchronously: a server that is not there yet is waited for in silence).
 * `probe` for psctl: ZMQ_IMMEDIATE off always; RECONNECT_IVL 100 ms, max 2 s; heartbeats each 5 s. */
struct dt_dealer *dt_dealer_create(struct dt_context *context, const char *endpoint,
                                   uint32_t window, struct dt_error *err);
void dt_dealer_destroy(struct dt_dealer *dealer, int linger_ms); /* NULL-safe */

/* Called by an I/O thread when libzmq dropped its reference to a frame's memory. */
typedef void dt_release_fn(void *arg);

struct dt_out_frame {
    const void *
        data; /* lent until `release` is called, also when the send is refused (then called at once) */
    size_t bytes;
    dt_release_fn *release; /* NULL: the bytes are copied */
    void *arg;
};

/* DT_SENT or DT_SENT_FULL. */
enum dt_sent dt_dealer_send(struct dt_dealer *dealer, const void *header, size_t bytes,
                            const struct dt_out_frame *frames, uint32_t n_frames);
/* As dt_router_recv; route is empty. */
enum dt_status dt_dealer_recv(struct dt_dealer *dealer, struct dt_message *message);
/* There may be something to receive that dt_poll need not be asked for. */
bool dt_dealer_may_have(const struct dt_dealer *dealer);

#endif
