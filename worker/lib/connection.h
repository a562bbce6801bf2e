/*
 * connection.h - one DEALER to one shard of one ps task: session, outstanding messages, window. Private.
 *
 * Messages are sent in the order in which they were added, those of a step given one by one in the order of variables
 * as far as they have not been sent yet; they stay in the list until their final reply.
 * At most `window` of them that are not parked, and window_bytes of payload, are under way; one
 * message may always go when nothing else is.
 */
#ifndef WORKER_LIB_CONNECTION_H
#define WORKER_LIB_CONNECTION_H

#include "worker/lib/client.h"

struct message;

enum connection_state {
    CONNECTION_HELLO, /* HELLO is to be sent, or was; nothing else goes out */
    CONNECTION_READY,
    CONNECTION_DEAD, /* refused for good, or not needed any more */
};

struct connection {
    struct task *task; /* borrowed */
    uint32_t shard;
    char endpoint[DT_MAX_ENDPOINT + 1];
    struct dt_dealer *dealer; /* owned; NULL: none now */
    int64_t dealer_ms;        /* when it was made */
    enum connection_state state;
    uint64_t session;
    uint64_t first_hello, last_hello; /* request ids since the session was lost; 0: none */
    int64_t hello_due_ms;             /* DT_FOREVER: when shard 0 has answered */
    uint32_t window;
    uint64_t window_bytes;
    struct message *list;   /* owned, in order */
    struct message *unsent; /* the first one of the list that is to be sent */
    uint32_t n_in_flight;
    uint64_t bytes_in_flight;
    uint32_t n_parked;
    int64_t parked_ms;          /* since when something is parked */
    struct dt_waiting *waiting; /* owned: what for, as last told */
    int64_t heard_ms;
    int64_t heartbeat_due_ms;
    int64_t heartbeat_ms; /* the oldest one without an answer; -1: none */
    bool full;            /* the transport took no more: try again soon */
};

struct connection *connection_create(struct task *task, uint32_t shard, const char *endpoint);
void connection_destroy(struct connection *c); /* NULL-safe; frees its messages */
/* Close the DEALER if there is one and make a new one. False when that fails (fatal was called). */
bool connection_reconnect(struct connection *c, int64_t now);
void connection_close(struct connection *c); /* DEALER only; what it held is let go */

void connection_add(struct connection *c, struct message *m);
void connection_flush(struct connection *c); /* send what the window allows */
struct message *connection_find(struct connection *c, uint64_t request);
void connection_park(struct connection *c, struct message *m, int64_t now);
void connection_finish(struct connection *c, struct message *m); /* answered: frees it */
/* The handle is over: what was sent keeps its place in the window, the rest goes. */
void connection_abandon(struct connection *c, const struct dtw_handle *handle);
/* A new session: everything is to be sent again, in order. */
void connection_rewind(struct connection *c);
void connection_heartbeat(struct connection *c, int64_t now);

#endif
