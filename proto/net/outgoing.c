/*
 * outgoing.c - a message as libzmq frames, sent whole or not at all.
 *
 * Invariant: each frame of a dt_outgoing is closed or taken by libzmq exactly once. Used by the
 * thread that drives the socket; free functions run there or on an I/O thread.
 */
#include "proto/net/outgoing.h"

#include <errno.h>
#include <string.h>

bool
dt_outgoing_copy(struct dt_outgoing *out, const void *data, size_t bytes)
{
    zmq_msg_t *m = &out->frames[out->n];

    if (zmq_msg_init_size(m, bytes) != 0)
        return false;
    if (bytes)
        memcpy(zmq_msg_data(m), data, bytes);
    out->n++;
    return true;
}

bool
dt_outgoing_lend(struct dt_outgoing *out, const void *data, size_t bytes, zmq_free_fn *free_fn,
                 void *hint)
{
    /* libzmq never writes through it */
    if (zmq_msg_init_data(&out->frames[out->n], (void *)(uintptr_t)data, bytes, free_fn, hint) != 0)
        return false;
    out->n++;
    return true;
}

void
dt_outgoing_discard(struct dt_outgoing *out)
{
    unsigned i;

    for (i = 0; i < out->n; i++)
        zmq_msg_close(&out->frames[i]);
    out->n = 0;
}

static int
send_frame(void *socket, zmq_msg_t *m, int flags)
{
    int rc;

    do
        rc = zmq_msg_send(m, socket, flags);
    while (rc < 0 && errno == EINTR);
    return rc;
}

/* A failure behind the first frame means that the peer has just gone and libzmq took the beginning
 * back (or that the context ends): the rest must not go out, it would begin a message of its own. */
enum dt_sent
dt_outgoing_send(struct dt_outgoing *out, struct dt_socket *socket)
{
    enum dt_sent result = DT_SENT;
    unsigned i;

    socket->unread = true;
    for (i = 0; i < out->n; i++) {
        int more = i + 1 < out->n ? ZMQ_SNDMORE : 0;

        if (send_frame(socket->zmq, &out->frames[i], ZMQ_DONTWAIT | more) < 0) {
            result = errno == EHOSTUNREACH ? DT_SENT_GONE : DT_SENT_FULL;
            break;
        }
    }
    for (; i < out->n; i++)
        zmq_msg_close(&out->frames[i]);
    out->n = 0;
    return result;
}
