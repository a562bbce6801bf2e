/*
 * session.h - a worker's registration on one connection, bound to the routing id of its HELLO.
 *
 * Data replies go through session_send: they leave at most `window` messages and window_bytes at a
 * time and wait in the session's queue meanwhile (DESIGN section 7, flow control).
 */
#ifndef PSD_SERVE_SESSION_H
#define PSD_SERVE_SESSION_H

#include "psd/serve/shard.h"

struct session_key {
    uint8_t peer_class;
    uint8_t len;
    unsigned char id[DT_ROUTE_BYTES];
};

struct session {
    struct session_key key;
    uint64_t id;
    struct view *view; /* borrowed */
    uint32_t rank;     /* DT_NO_RANK: a reader */
    uint64_t life;
    struct window window;
    int64_t seen_ms;       /* last message, in running time */
    struct parked *parked; /* list, owned, oldest first */
    uint32_t n_parked_items;
    size_t parked_bytes;
    struct reply *queue, **queue_end; /* owned: replies that wait for room */
    uint32_t n_ordinary;              /* queued replies that were never parked: at most `window` */
    size_t ordinary_bytes;            /* their payload: at most window_bytes, or one reply */
    uint32_t n_woken_items; /* slices in queued replies that were parked: bounded with the parked */
    struct dt_meter *meter; /* shared with the transport */
    bool acknowledged;      /* GOODBYE */
    struct session *prev, *next;               /* in view->sessions */
    struct session *prev_queued, *next_queued; /* in shard->queued, while there is a queue */
    UT_hash_handle hh;
};

struct session *session_find(struct shard *shard, enum peer_class peer_class,
                             const struct dt_route *route);
/* Bind a session to the request's route; an older one of that route or of that rank ends first.
 * NULL when memory is short or there are too many. */
struct session *session_create(struct shard *shard, const struct reply_to *to, struct view *view,
                               uint32_t rank, uint64_t life);
/* Drops parked entries and queued replies; the connection's next message is answered HELLO_REQUIRED. */
void session_end(struct shard *shard, struct session *session);

/* Send a data reply when there is room. `woken`: it was parked. Takes the reply. May end the session
 * (a peer over its window): returns false then. */
bool session_send(struct shard *shard, struct session *session, struct reply *reply, bool woken,
                  struct outbox *out);
void session_flush(struct shard *shard, struct session *session, struct outbox *out);
void session_requeue(struct shard *shard, struct session *session,
                     struct reply *reply); /* in front */
struct reply_to session_reply_to(const struct session *session, unsigned op, uint64_t request);

#endif
