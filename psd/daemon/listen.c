/*
 * listen.c - binds all endpoints of all shards, or none. Main thread.
 *
 * Shard 0 is bound first on every endpoint: it is what users name, and its real port decides where
 * consecutive ports start. The others follow on ports of their own (tcp) or with a suffix (ipc).
 */
#include "psd/daemon/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/net/endpoint.h"
#include "psd/daemon/admin_path.h"
#include "psd/daemon/leftovers.h"
#include "psd/daemon/shard_endpoint.h"

#define SOCKET_MODE 0660

static enum dt_status
require_router(struct listen_set *set, struct dt_context *context, uint32_t shard,
               enum peer_class class, const struct config *c, struct dt_router **router,
               struct dt_error *err)
{
    struct dt_router_options options = {.window = (uint32_t)c->window,
                                        .local = class != PEER_NETWORK,
                                        .io_thread = shard % (uint32_t)c->io_threads};

    if (!set->routers[shard][class])
        set->routers[shard][class] = dt_router_create(context, &options, err);
    *router = set->routers[shard][class];
    return *router ? DT_OK : err ? err->code : DT_E_INTERNAL;
}

static void
tell_peer(const struct config *c, struct serve_listener *l, uint32_t shard, const char *bound)
{
    char *peer = l->peers[shard];
    struct dt_endpoint e;

    if (dt_endpoint_split(bound, &e, NULL) != DT_OK)
        return;
    if (e.is_ipc) {
        if (shard > 0)
            snprintf(peer, sizeof(l->peers[0]), ".%u", shard);
    } else if (shard > 0 && c->advertise && c->advertise[0]) {
        snprintf(peer, sizeof(l->peers[0]), "%s", c->advertise[shard - 1]);
    } else {
        snprintf(peer, sizeof(l->peers[0]), "%s", e.port);
    }
}

static enum dt_status
bind_one(struct listen_set *set, struct dt_context *context, const struct config *c, uint32_t index,
         uint32_t shard, struct dt_error *err)
{
    struct serve_listener *l = &set->listeners[index];
    const char *asked = c->listen[index];
    bool local = dt_endpoint_is_local(asked);
    char endpoint[DT_MAX_ENDPOINT + 1], bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    enum dt_status s;

    s = require_router(set, context, shard, local ? PEER_LOCAL : PEER_NETWORK, c, &router, err);
    if (s != DT_OK)
        return s;
    s = shard_endpoint(c, asked, shard > 0 ? l->endpoint : asked, shard, endpoint, err);
    if (s == DT_OK)
        s = dt_router_bind(router, endpoint, SOCKET_MODE, bound, err);
    if (s != DT_OK)
        return s;
    leftovers_note(bound);
    if (shard == 0)
        snprintf(l->endpoint, sizeof(l->endpoint), "%s", bound);
    tell_peer(c, l, shard, bound);
    return DT_OK;
}

static enum dt_status
bind_admin(struct listen_set *set, struct dt_context *context, const struct config *c,
           struct dt_error *err)
{
    char endpoint[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    enum dt_status s = admin_endpoint(c, set->listeners[0].endpoint, endpoint, err);

    if (s != DT_OK || !endpoint[0])
        return s;
    s = require_router(set, context, 0, PEER_ADMIN, c, &router, err);
    if (s == DT_OK)
        s = dt_router_bind(router, endpoint, SOCKET_MODE, set->admin, err);
    if (s == DT_OK)
        leftovers_note(set->admin);
    return s;
}

static enum dt_status
bind_all(struct listen_set *set, struct dt_context *context, const struct config *c,
         struct dt_error *err)
{
    enum dt_status s = DT_OK;
    uint32_t i, k;

    for (k = 0; k < set->n_shards; k++) {
        for (i = 0; i < set->n_listeners && s == DT_OK; i++)
            s = bind_one(set, context, c, i, k, err);
    }
    return s == DT_OK ? bind_admin(set, context, c, err) : s;
}

enum dt_status
listen_open(struct listen_set *set, struct dt_context *context, const struct config *c,
            struct dt_error *err)
{
    enum dt_status s;

    memset(set, 0, sizeof(*set));
    set->n_shards = (uint32_t)c->shards;
    while (c->listen[set->n_listeners])
        set->n_listeners++;
    set->listeners = calloc(set->n_listeners, sizeof(*set->listeners));
    if (!set->listeners)
        return dt_fail(err, DT_E_NO_MEMORY, "out of memory");
    s = bind_all(set, context, c, err);
    if (s != DT_OK)
        listen_close(set, 0);
    return s;
}

void
listen_close(struct listen_set *set, int linger_ms)
{
    uint32_t k, class;

    for (k = 0; k < set->n_shards; k++) {
        for (class = 0; class < N_PEER_CLASSES; class ++) {
            if (set->routers[k][class])
                dt_router_linger(set->routers[k][class], linger_ms);
            dt_router_destroy(set->routers[k][class]);
            set->routers[k][class] = NULL;
        }
    }
    leftovers_forget();
    free(set->listeners);
    set->listeners = NULL;
    set->n_listeners = 0;
}
