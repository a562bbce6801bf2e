/*
 * socket.h - private to proto/net: what the files of this folder share about libzmq sockets.
 */
#ifndef DT_NET_SOCKET_H
#define DT_NET_SOCKET_H

#include <stdint.h>

#include "proto/net/dealer.h"
#include "proto/net/router.h"

struct dt_ipc_lock;

struct dt_router {
    void *socket;              /* owned */
    struct dt_ipc_lock *locks; /* owned: list of bound ipc paths */
};

struct dt_dealer {
    void *socket; /* owned */
};

void *dt_context_zmq(struct dt_context *context); /* borrowed */

/* 0 or -1 with errno, as zmq_setsockopt. */
int dt_socket_set(void *socket, int option, int value);
/* The options that both kinds of socket have: limits, heartbeats, keepalive, LINGER 0. */
int dt_socket_set_common(void *socket, int hwm);

/* The high-water mark for a window of requests. A legal peer can have 3 * window + 16 messages under way
 * (answers, PARKED, woken replies), and libzmq tells the writer of a pipe what was read only each half
 * mark: so it takes twice that. With less, legal peers met EAGAIN (seen with a window of 8). */
int dt_hwm(uint32_t window);

/* One whole message from `socket`; `routed`: the first frame is the peer's routing id. */
enum dt_status dt_message_recv(void *socket, bool routed, struct dt_message *message);

#endif
