/*
 * raw_stream.c - the yardstick of transfers: one plain stream socket, 1 MiB writes, no protocol.
 *
 * A thread sends the same buffer again and again, the other end reads 1 MiB at a time into one buffer and, for a push,
 * applies it to the values at their place (w -= a * g); for a pull it reads into the destination.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "proto/base/clock.h"
#include "psd/optim/kernels.h"

enum { CHUNK = 1 << 20 };

struct sender {
    int fd;
    const char *data;
    size_t bytes;
    uint64_t rounds;
};

static void *
send_all(void *arg)
{
    const struct sender *s = arg;
    uint64_t round;
    size_t at;

    for (round = 0; round < s->rounds; round++) {
        for (at = 0; at < s->bytes;) {
            size_t left = s->bytes - at;
            ssize_t n = send(s->fd, s->data + at, left < CHUNK ? left : CHUNK, MSG_NOSIGNAL);

            if (n < 0 && errno != EINTR)
                bench_fail("raw stream: send: %s", strerror(errno));
            at += n > 0 ? (size_t)n : 0;
        }
    }
    return NULL;
}

static void
receive(int fd, char *to, size_t bytes)
{
    size_t at;

    for (at = 0; at < bytes;) {
        ssize_t n = recv(fd, to + at, bytes - at, 0);

        if (n == 0 || (n < 0 && errno != EINTR))
            bench_fail("raw stream: receive: %s", n == 0 ? "closed" : strerror(errno));
        at += n > 0 ? (size_t)n : 0;
    }
}

static void
tcp_pair(int fds[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&a, &len))
        bench_fail("raw stream: %s", strerror(errno));
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fds[0], (struct sockaddr *)&a, sizeof(a)) ||
        (fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
        bench_fail("raw stream: %s", strerror(errno));
    setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    close(listener);
}

static void
open_pair(bool tcp, int fds[2])
{
    if (tcp)
        tcp_pair(fds);
    else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        bench_fail("raw stream: %s", strerror(errno));
}

/* `n` elements go over once a round. */
static double
run(int fds[2], float *w, const float *g, float *chunk, size_t n, bool apply, uint64_t rounds)
{
    struct sender s = {fds[0], (const char *)g, n * sizeof(float), rounds};
    double start = dt_now_seconds();
    pthread_t thread;
    uint64_t round;
    size_t at;

    if (pthread_create(&thread, NULL, send_all, &s))
        bench_fail("raw stream: no thread");
    for (round = 0; round < rounds; round++) {
        for (at = 0; at < n; at += CHUNK / sizeof(float)) {
            size_t part = n - at < CHUNK / sizeof(float) ? n - at : CHUNK / sizeof(float);

            receive(fds[1], apply ? (char *)chunk : (char *)(w + at), part * sizeof(float));
            if (apply)
                kernel_sgd(w + at, w + at, chunk, 1e-6f, part);
        }
    }
    pthread_join(thread, NULL);
    return dt_now_seconds() - start;
}

struct bench_rate
yardstick_stream(bool tcp, size_t bytes, bool apply, double seconds)
{
    size_t n = bytes / sizeof(float);
    float *w = dtw_alloc(n), *g = dtw_alloc(n), *chunk = dtw_alloc(CHUNK / sizeof(float));
    double span, cpu = 0, moved;
    uint64_t rounds = 1;
    int fds[2];

    if (!w || !g || !chunk)
        bench_fail("short of memory");
    memset(w, 0, bytes);
    memset(g, 0, bytes);
    open_pair(tcp, fds);
    run(fds, w, g, chunk, n, apply, 1); /* pages, windows */
    for (;;) {
        cpu = bench_cpu_seconds();
        span = run(fds, w, g, chunk, n, apply, rounds);
        cpu = bench_cpu_seconds() - cpu;
        if (span >= seconds)
            break;
        rounds = span > seconds / 64 ? (uint64_t)((double)rounds * seconds / span * 1.2) + 1
                                     : rounds * 16;
    }
    moved = (double)rounds * (double)bytes;
    close(fds[0]);
    close(fds[1]);
    dtw_free(w, n);
    dtw_free(g, n);
    dtw_free(chunk, CHUNK / sizeof(float));
    return (struct bench_rate){moved / span, cpu / moved};
}
