/*
 * message.c - receiving one whole message.
 *
 * Invariants: a message is read to its last frame, whatever it holds; at most 1 + DT_MAX_ITEMS frames
 * are kept. Spans point into the zmq_msg_t array (short frames live inside it), so they are taken when
 * the array no longer moves. Used by the thread that drives the socket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

#include "proto/net/socket.h"

#define SEND_BUFFER_BYTES (1 << 20)
#define FIRST_FRAMES 3
#define MAX_FRAMES (DT_MAX_ITEMS + 1) /* header and payload */

struct frames {
    unsigned n, cap;
    zmq_msg_t at[];
};

static int
recv_frame(void *socket, zmq_msg_t *m)
{
    int rc;

    do
        rc = zmq_msg_recv(m, socket, ZMQ_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    return rc;
}

static void
frames_free(struct frames *f)
{
    unsigned i;

    if (!f)
        return;
    for (i = 0; i < f->n; i++)
        zmq_msg_close(&f->at[i]);
    free(f);
}

/* Makes room for another frame; false: no memory, or as many as a message may have. */
static bool
frames_grow(struct frames **frames)
{
    struct frames *old = *frames, *f;
    unsigned i, cap = old ? MAX_FRAMES : FIRST_FRAMES;

    if (old && old->n < old->cap)
        return true;
    if (old && old->cap == MAX_FRAMES)
        return false;
    f = malloc(sizeof(*f) + cap * sizeof(f->at[0]));
    if (!f)
        return false;
    f->cap = cap;
    f->n = old ? old->n : 0;
    for (i = 0; i < f->n; i++) {
        zmq_msg_init(&f->at[i]);
        zmq_msg_move(&f->at[i], &old->at[i]);
    }
    frames_free(old);
    *frames = f;
    return true;
}

/* Takes the routing id off. An id of a length that we never give makes the message one to refuse. */
static enum dt_status
recv_route(void *socket, struct dt_message *message, bool *more)
{
    zmq_msg_t m;
    size_t n;

    zmq_msg_init(&m);
    if (recv_frame(socket, &m) < 0) {
        int error = errno;

        zmq_msg_close(&m);
        return error == EAGAIN || error == ETERM ? DT_E_TIMEOUT : DT_E_INTERNAL;
    }
    n = zmq_msg_size(&m);
    if (n <= DT_ROUTE_BYTES) {
        memcpy(message->route.id, zmq_msg_data(&m), n);
        message->route.len = (uint8_t)n;
    } else {
        message->overflow = true;
    }
    *more = zmq_msg_more(&m) != 0;
    zmq_msg_close(&m);
    return DT_OK;
}

/* One more frame, kept while there is room. */
static enum dt_status
recv_part(void *socket, struct dt_message *message, bool *more)
{
    struct frames *f;
    zmq_msg_t m;

    zmq_msg_init(&m);
    if (recv_frame(socket, &m) < 0) {
        int error = errno;

        zmq_msg_close(&m);
        return error == EAGAIN || error == ETERM ? DT_E_TIMEOUT : DT_E_INTERNAL;
    }
    *more = zmq_msg_more(&m) != 0;
    f = message->private_frames;
    if (!message->overflow && frames_grow(&f)) {
        message->private_frames = f;
        zmq_msg_init(&f->at[f->n]);
        zmq_msg_move(&f->at[f->n], &m);
        f->n++;
    } else {
        message->overflow = true;
    }
    zmq_msg_close(&m);
    return DT_OK;
}

static struct dt_span
span_of(zmq_msg_t *m)
{
    return (struct dt_span){zmq_msg_data(m), zmq_msg_size(m)};
}

static void
set_spans(struct dt_message *message)
{
    struct frames *f = message->private_frames;
    unsigned i;

    if (!f)
        return;
    message->header = span_of(&f->at[0]);
    message->n_frames = f->n - 1;
    for (i = 1; i < f->n; i++)
        message->frames[i - 1] = span_of(&f->at[i]);
}

enum dt_status
dt_message_recv(struct dt_socket *socket, bool routed, struct dt_message *message)
{
    enum dt_status status = DT_OK;
    bool more = true;

    message->route.len = 0;
    message->header = (struct dt_span){(const unsigned char *)"", 0};
    message->n_frames = 0;
    message->overflow = false;
    message->private_frames = NULL;
    if (routed)
        status = recv_route(socket->zmq, message, &more);
    while (status == DT_OK && more)
        status = recv_part(socket->zmq, message, &more);
    socket->unread = status == DT_OK;
    if (status != DT_OK) {
        dt_message_deinit(message);
        return status;
    }
    set_spans(message);
    return DT_OK;
}

int
dt_message_widen(const struct dt_message *message)
{
    const struct frames *f = message->private_frames;
    int fd = f && f->n > 0 ? zmq_msg_get(&f->at[0], ZMQ_SRCFD) : -1;
    int domain = 0, bytes = SEND_BUFFER_BYTES;
    socklen_t len = sizeof(domain);

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_UNIX)
        return 0;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    len = sizeof(bytes);
    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len) == 0 ? bytes : 0;
}

void
dt_message_deinit(struct dt_message *message)
{
    frames_free(message->private_frames);
    message->private_frames = NULL;
    message->n_frames = 0;
    message->header = (struct dt_span){(const unsigned char *)"", 0};
}
