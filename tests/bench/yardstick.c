/*
 * yardstick.c - what the machine does without psd: bare ZeroMQ and a bare kernel.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "bench.h"
#include "proto/base/clock.h"
#include "psd/optim/kernels.h"

struct echo {
    void *router;
};

/* Take id and payload, answer with the id and four bytes; an empty payload ends it. */
static void *
answer(void *arg)
{
    struct echo *e = arg;
    zmq_msg_t id, payload;
    size_t bytes = 1;

    while (bytes > 0) {
        zmq_msg_init(&id);
        zmq_msg_init(&payload);
        if (zmq_msg_recv(&id, e->router, 0) < 0 || zmq_msg_recv(&payload, e->router, 0) < 0)
            break;
        bytes = zmq_msg_size(&payload);
        zmq_msg_close(&payload);
        zmq_msg_send(&id, e->router, ZMQ_SNDMORE);
        zmq_send(e->router, "done", 4, 0);
    }
    return NULL;
}

static uint64_t
exchange(void *dealer, const char *frame, size_t bytes, unsigned window, double seconds)
{
    double end = dt_now_seconds() + seconds;
    uint64_t n = 0;
    unsigned in_flight = 0;
    char reply[8];

    while (in_flight < window) {
        zmq_send(dealer, frame, bytes, 0);
        in_flight++;
    }
    while (in_flight > 0) {
        if (zmq_recv(dealer, reply, sizeof(reply), 0) != 4)
            bench_fail("the bare echo failed");
        n++;
        in_flight--;
        if (dt_now_seconds() < end) {
            zmq_send(dealer, frame, bytes, 0);
            in_flight++;
        }
    }
    return n;
}

struct bench_rate
yardstick_router_dealer(bool tcp, size_t bytes, unsigned window, double seconds)
{
    char directory[BENCH_DIRECTORY], endpoint[96];
    size_t len = sizeof(endpoint);
    void *context = zmq_ctx_new(), *dealer = zmq_socket(context, ZMQ_DEALER);
    struct echo e = {zmq_socket(context, ZMQ_ROUTER)};
    char *frame = calloc(1, bytes);
    pthread_t thread;
    double start, cpu;
    uint64_t n;

    bench_directory(directory);
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/echo", directory);
    if (!frame || zmq_bind(e.router, tcp ? "tcp://127.0.0.1:*" : endpoint) ||
        zmq_getsockopt(e.router, ZMQ_LAST_ENDPOINT, endpoint, &len) ||
        zmq_connect(dealer, endpoint) || pthread_create(&thread, NULL, answer, &e))
        bench_fail("the bare echo cannot start");
    start = dt_now_seconds();
    cpu = bench_cpu_seconds();
    n = exchange(dealer, frame, bytes, window, seconds);
    start = dt_now_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    zmq_send(dealer, "", 0, 0);
    pthread_join(thread, NULL);
    zmq_close(dealer);
    zmq_close(e.router);
    zmq_ctx_term(context);
    free(frame);
    if (!tcp)
        unlink(strchr(endpoint, '/') + 2); /* libzmq leaves it */
    bench_directory_remove(directory);
    return (struct bench_rate){(double)n / start, cpu / (double)n};
}

double
yardstick_add(size_t elements, double seconds)
{
    float *w = dtw_alloc(elements), *g = dtw_alloc(elements);
    double start = dt_now_seconds(), span;
    uint64_t n = 0;

    if (!w || !g)
        bench_fail("short of memory");
    do {
        kernel_add(w, w, g, elements);
        n++;
        span = dt_now_seconds() - start;
    } while (span < seconds);
    dtw_free(w, elements);
    dtw_free(g, elements);
    return (double)n / span;
}
