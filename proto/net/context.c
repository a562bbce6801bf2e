/*
 * context.c - the libzmq context with its ZAP thread.
 *
 * Invariant: libzmq's threads are started here, by a first socket, with all signals blocked; so they
 * never take a signal of the application. Created and destroyed by the program's main thread or the
 * library's caller.
 */
#include "proto/net/context.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <zmq.h>

#include "proto/base/descriptors.h"
#include "proto/net/socket.h"
#include "proto/net/zap.h"
#include "proto/wire/limits.h"

/* Of the context with its ZAP thread; and of each I/O thread. */
#define CONTEXT_DESCRIPTORS 14
#define THREAD_DESCRIPTORS 2
/* A client has a socket for each shard of each ps task; libzmq's own limit is 1 023. */
#define MAX_SOCKETS (DT_MAX_TASKS * DT_MAX_SHARDS)

struct dt_context {
    void *zmq; /* owned */
    bool has_zap;
    pthread_t zap;
};

void *
dt_context_zmq(struct dt_context *context)
{
    return context->zmq;
}

static void
term(void *zmq)
{
    while (zmq_ctx_term(zmq) != 0 && errno == EINTR)
        continue;
}

/* The first socket starts the I/O threads. */
static int
start_threads(struct dt_context *c, bool zap)
{
    void *socket;

    if (zap) {
        c->has_zap = dt_zap_start(c->zmq, &c->zap) == 0;
        return c->has_zap ? 0 : -1;
    }
    socket = zmq_socket(c->zmq, ZMQ_PAIR);
    return socket ? zmq_close(socket) : -1;
}

static int
open_context(struct dt_context *c, bool zap, int io_threads)
{
    c->zmq = zmq_ctx_new();
    if (!c->zmq)
        return -1;
    if (zmq_ctx_set(c->zmq, ZMQ_IO_THREADS, io_threads) != 0 ||
        zmq_ctx_set(c->zmq, ZMQ_MAX_SOCKETS, MAX_SOCKETS) != 0 ||
        zmq_ctx_set(c->zmq, ZMQ_BLOCKY, 0) != 0)
        return -1;
    return start_threads(c, zap);
}

struct dt_context *
dt_context_create(bool zap, int io_threads, struct dt_error *err)
{
    unsigned threads = io_threads > 0 ? (unsigned)io_threads : 1;
    struct dt_context *c;
    sigset_t all, before;
    int rc, error;

    /* libzmq aborts when it cannot make its epoll descriptors */
    if (dt_descriptors_check(CONTEXT_DESCRIPTORS + THREAD_DESCRIPTORS * threads, "ZeroMQ", err) !=
        DT_OK)
        return NULL;
    c = calloc(1, sizeof(*c));
    if (!c) {
        dt_fail(err, DT_E_NO_MEMORY, "no memory for the ZeroMQ context");
        return NULL;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = open_context(c, zap, (int)threads);
    error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return c;
    dt_fail(err, error == ENOMEM ? DT_E_NO_MEMORY : DT_E_UNAVAILABLE,
            "cannot start ZeroMQ: %s: raise the limit of open files or threads",
            zmq_strerror(error));
    if (c->zmq)
        term(c->zmq);
    free(c);
    return NULL;
}

void
dt_context_destroy(struct dt_context *context)
{
    if (!context)
        return;
    if (context->has_zap) {
        zmq_ctx_shutdown(context->zmq);
        pthread_join(context->zap, NULL);
    }
    term(context->zmq);
    free(context);
}
