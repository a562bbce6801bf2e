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

/* One whole message from `socket`; `routed`: the first frame is the peer's routing id. */
enum dt_status dt_message_recv(void *socket, bool routed, struct dt_message *message);

#endif
