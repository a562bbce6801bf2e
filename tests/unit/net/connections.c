/*
 * connections.c - many sockets in a context, and peers that fall silent.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/net/net.h"

TestSuite(connections, .timeout = 120);

/* libzmq alone gives a context 1 023; a client may have a socket for each of 256 * 64 shards. */
Test(connections, a_context_has_more_sockets_than_libzmq_gives_by_itself)
{
    enum { N = 1100 };
    struct rlimit limit;
    struct dt_dealer *dealers[N];
    struct net n;
    unsigned i;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * N)
        cr_skip_test("not enough file descriptors");
    net_init(&n);
    for (i = 0; i < N; i++)
        dealers[i] = net_dealer(&n, net_ipc(&n, "nobody"));
    for (i = 0; i < N; i++)
        dt_dealer_destroy(dealers[i], 0);
    net_deinit(&n);
}

/* A peer by hand, ZMTP 3.0: greeting and READY both ways. */
static int
shake_hands(const char *bound)
{
    static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL";
    static const char ready[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                                "DEALER";
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char in[512];
    ssize_t n = 0, got;

    a.sin_port = htons((uint16_t)atoi(strrchr(bound, ':') + 1));
    cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    cr_assert_eq(send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL), sizeof(greeting));
    cr_assert_eq(send(fd, ready, sizeof(ready) - 1, MSG_NOSIGNAL), sizeof(ready) - 1);
    while (n < 66 || n < 66 + in[65]) { /* READY is shorter than 127 bytes */
        got = recv(fd, in + n, sizeof(in) - (size_t)n, 0);
        cr_assert_gt(got, 0, "no handshake");
        n += got;
    }
    cr_assert(!memcmp(in + 66, "\5READY", 6));
    return fd;
}

/* The server itself sends no heartbeats, and keeps to the time that a peer's own promise. */
Test(connections, a_peer_that_falls_silent_is_cut_by_its_own_ttl)
{
    static const char ping[] = "\x04\x07\x04PING\0\x0a"; /* 1 s */
    char bound[DT_MAX_ENDPOINT + 1], pong[8];
    struct dt_router *router;
    int64_t start;
    struct net n;
    int fd;

    net_init(&n);
    router = net_router(&n, "tcp://127.0.0.1:0", bound);
    fd = shake_hands(bound);
    cr_assert_eq(send(fd, ping, sizeof(ping) - 1, MSG_NOSIGNAL), sizeof(ping) - 1);
    start = dt_now_ms();
    cr_assert_eq(recv(fd, pong, 7, MSG_WAITALL), 7);
    cr_assert(!memcmp(pong, "\x04\x05\x04PONG", 7));
    cr_assert_leq(recv(fd, pong, sizeof(pong), 0), 0, "it says nothing more, and hangs up");
    cr_assert_geq(dt_now_ms() - start, 900);
    close(fd);
    dt_router_destroy(router);
    net_deinit(&n);
}

/* Those of a client come each 5 s. */
Test(connections, the_server_sends_no_heartbeats)
{
    struct timeval patience = {.tv_sec = 6};
    char bound[DT_MAX_ENDPOINT + 1], byte;
    struct dt_router *router;
    struct net n;
    int fd;

    net_init(&n);
    router = net_router(&n, "tcp://127.0.0.1:0", bound);
    fd = shake_hands(bound);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    cr_assert_eq(recv(fd, &byte, 1, 0), -1, "neither a byte nor the end");
    close(fd);
    dt_router_destroy(router);
    net_deinit(&n);
}
