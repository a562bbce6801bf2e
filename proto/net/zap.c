/*
 * zap.c - the ZAP handler: every NULL-mechanism peer passes, everything else is refused.
 *
 * It exists although everybody passes: a socket with a ZAP domain takes only peers that speak
 * ZMTP 3, so that raw bytes on the port never arrive as a message. Runs in a thread of its own,
 * which owns the REP socket from the start on; it stops when the context is shut down (ETERM).
 */
#include "proto/net/zap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zmq.h>

#define N_FRAMES 6 /* version, request id, domain, address, routing id, mechanism */
#define FRAME_BYTES 256

struct frame {
    size_t bytes;
    char data[FRAME_BYTES];
};

struct query {
    struct frame frames[N_FRAMES];
    unsigned n;
    bool too_long;
};

/* One frame; true when another one follows. `*error` is set when the context ends. */
static bool
recv_frame(void *socket, struct query *q, bool *error)
{
    struct frame *f = &q->frames[q->n < N_FRAMES ? q->n : N_FRAMES - 1];
    char rest[FRAME_BYTES];
    bool keep = q->n < N_FRAMES;
    int n, more = 0;
    size_t size = sizeof(more);

    do
        n = zmq_recv(socket, keep ? f->data : rest, FRAME_BYTES, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 || zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0) {
        *error = true;
        return false;
    }
    if (keep) {
        q->too_long = q->too_long || n > FRAME_BYTES;
        f->bytes = n > FRAME_BYTES ? FRAME_BYTES : (size_t)n;
    }
    q->n++;
    return more != 0;
}

static bool
is_text(const struct frame *f, const char *text)
{
    return f->bytes == strlen(text) && !memcmp(f->data, text, f->bytes);
}

static bool
send_text(void *socket, const void *data, size_t bytes, int flags)
{
    int rc;

    do
        rc = zmq_send(socket, data, bytes, flags);
    while (rc < 0 && errno == EINTR);
    return rc >= 0;
}

static bool
answer(void *socket, const struct query *q)
{
    bool pass = q->n >= N_FRAMES && !q->too_long && is_text(&q->frames[0], "1.0") &&
                is_text(&q->frames[5], "NULL");
    const char *text = pass ? "OK" : "refused";

    return send_text(socket, "1.0", 3, ZMQ_SNDMORE) &&
           send_text(socket, q->frames[1].data, q->frames[1].bytes, ZMQ_SNDMORE) &&
           send_text(socket, pass ? "200" : "400", 3, ZMQ_SNDMORE) &&
           send_text(socket, text, strlen(text), ZMQ_SNDMORE) &&
           send_text(socket, "", 0, ZMQ_SNDMORE) && send_text(socket, "", 0, 0);
}

static void *
run(void *socket)
{
    bool error = false;
    struct query q;

    while (!error) {
        q.n = 0;
        q.too_long = false;
        q.frames[1].bytes = 0;
        while (recv_frame(socket, &q, &error))
            continue;
        if (!error)
            error = !answer(socket, &q);
    }
    zmq_close(socket);
    return NULL;
}

int
dt_zap_start(void *zmq, pthread_t *thread)
{
    void *socket = zmq_socket(zmq, ZMQ_REP);
    int zero = 0, rc;

    if (!socket)
        return -1;
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof(zero));
    if (zmq_bind(socket, "inproc://zeromq.zap.01") != 0) {
        rc = errno;
    } else {
        rc = pthread_create(thread, NULL, run, socket);
        if (rc == 0)
            return 0;
    }
    zmq_close(socket);
    errno = rc;
    return -1;
}
