/*
 * listen.h - all sockets of a psd: for each shard one ROUTER a peer class, the admin ROUTER on shard
 * 0, and the table that HELLO tells clients. All endpoints are bound, or none.
 *
 * Thread rule: opened and closed by the main thread; in between each router belongs to its shard's
 * thread (pthread_create and pthread_join are the fences).
 */
#ifndef PSD_DAEMON_LISTEN_H
#define PSD_DAEMON_LISTEN_H

#include "proto/net/router.h"
#include "psd/daemon/config.h"
#include "psd/serve/serve.h"

struct listen_set {
    uint32_t n_shards;
    struct dt_router *routers[DT_MAX_SHARDS][N_PEER_CLASSES]; /* owned; NULL: none */
    struct serve_listener *listeners;                         /* owned array */
    uint32_t n_listeners;
    char admin[DT_MAX_ENDPOINT + 1]; /* as bound; "" for none */
};

/* On failure nothing is left open. DT_E_ADDRESS_IN_USE, DT_E_CONFIG, DT_E_CANT_CREATE, ... */
enum dt_status listen_open(struct listen_set *set, struct dt_context *context,
                           const struct config *c, struct dt_error *err);
/* Closes every router (what is still unsent gets `linger_ms`) and removes the socket files. */
void listen_close(struct listen_set *set, int linger_ms);

#endif
