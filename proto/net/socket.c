/*
 * socket.c - the options that ROUTER and DEALER share. Used by the thread that makes the socket.
 */
#include "proto/net/socket.h"

#include <zmq.h>

#define MAX_WINDOW 1000000

#define FRAME_SLACK 4096
/* What finds a host that is gone where its client sends no heartbeats: 25 s. */
#define KEEPALIVE_IDLE_SECONDS 15
#define KEEPALIVE_INTERVAL_SECONDS 5
#define KEEPALIVE_COUNT 2
#define HANDSHAKE_MS 5000

int
dt_socket_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value));
}

int
dt_socket_open(struct dt_socket *s, struct dt_context *context, int kind)
{
    size_t size = sizeof(s->fd);

    s->unread = true;
    s->zmq = zmq_socket(dt_context_zmq(context), kind);
    return s->zmq ? zmq_getsockopt(s->zmq, ZMQ_FD, &s->fd, &size) : -1;
}

int
dt_hwm(uint32_t window)
{
    if (window > MAX_WINDOW)
        window = MAX_WINDOW;
    return (int)(2 * (3 * window + 16));
}

int
dt_socket_set_common(void *socket, int hwm)
{
    static const struct {
        int option, value;
    } table[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_IPV6, 1},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_SECONDS},
        {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_SECONDS},
        {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT},
    };
    int64_t max = DT_MAX_FRAME_BYTES + FRAME_SLACK;
    unsigned i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (dt_socket_set(socket, table[i].option, table[i].value) != 0)
            return -1;
    }
    if (dt_socket_set(socket, ZMQ_SNDHWM, hwm) != 0 || dt_socket_set(socket, ZMQ_RCVHWM, hwm) != 0)
        return -1;
    /* unset, a frame's length of 15 bytes makes libzmq reserve gigabytes */
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
}
