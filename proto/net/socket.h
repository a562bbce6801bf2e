/*
 * socket.h - private to proto/net: what the files of this folder share about libzmq sockets.
 */
#ifndef DT_NET_SOCKET_H
#define DT_NET_SOCKET_H

#include <stdint.h>

#include "proto/net/dealer.h"
#include "proto/net/router.h"

struct dt_ipc_lock;

/* A descriptor of libzmq is an edge: it becomes readable with a command in the socket's mailbox, and any call may take
 * the command. So after a call there may be messages without a readable descriptor, until a receive finds none. */
struct dt_socket {
    void *zmq; /* owned */
    int fd;    /* ZMQ_FD */
    bool unread;
};

struct dt_router {
    struct dt_socket socket;
    struct dt_ipc_lock *locks; /* owned: list of bound ipc paths */
};

struct dt_dealer {
    struct dt_socket socket;
};

/* A new socket of that kind; -1 with errno. */
int dt_socket_open(struct dt_socket *s, struct dt_context *context, int kind);

void *dt_context_zmq(struct dt_context *context); /* borrowed */

/* 0 or -1 with errno, as zmq_setsockopt. */
int dt_socket_set(void *socket, int option, int value);
/* The options that both kinds of socket have: limits, keepalive, LINGER 0. */
int dt_socket_set_common(void *socket, int hwm);

/* The high-water mark for a window of requests. A legal peer can have 3 * window + 16 messages under way
 * (answers, PARKED, woken replies), and libzmq tells the writer of a pipe what was read only each half
 * mark: so it takes twice that. With less, legal peers met EAGAIN (seen with a window of 8). */
int dt_hwm(uint32_t window);

/* One whole message from `socket`; `routed`: the first frame is the peer's routing id. */
enum dt_status dt_message_recv(struct dt_socket *socket, bool routed, struct dt_message *message);

#endif
