/*
 * bind.c - endpoints, the ipc lock, errors of bind, and peers that do not speak ZMTP.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/net/net.h"

TestSuite(bind, .timeout = 240);

static enum dt_status
try_bind(struct net *n, const char *endpoint, struct dt_error *err)
{
    struct dt_router_options options = {.window = 8};
    struct dt_router *r = dt_router_create(n->context, &options, NULL);
    char bound[DT_MAX_ENDPOINT + 1];
    enum dt_status status;

    cr_assert_not_null(r);
    status = dt_router_bind(r, endpoint, 0, bound, err);
    dt_router_destroy(r);
    return status;
}

Test(bind, a_second_ipc_bind_is_refused_and_names_the_pid)
{
    char bound[DT_MAX_ENDPOINT + 1], pid[16];
    struct dt_router *first;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct dt_error err;
    struct net n;

    net_init(&n);
    first = net_router(&n, net_ipc(&n, "s"), bound);
    cr_assert_str_eq(bound, net_ipc(&n, "s"));
    cr_assert_eq(try_bind(&n, net_ipc(&n, "s"), &err), DT_E_ADDRESS_IN_USE);
    snprintf(pid, sizeof(pid), "process %d", (int)getpid());
    cr_assert_not_null(strstr(err.text, pid), "%s", err.text);
    dealer = net_dealer(&n, bound);
    dt_dealer_send(dealer, "alive", 5, NULL, 0);
    net_router_recv(first, &m);
    cr_assert(net_is_text(m.header, "alive"), "the owner was not disturbed");
    dt_message_deinit(&m);
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(first);
    cr_assert_eq(try_bind(&n, net_ipc(&n, "s"), &err), DT_OK, "free at once: %s", err.text);
    net_deinit(&n);
}

/* As after kill -9: the files are there, their owner is not. */
Test(bind, stale_files_are_taken_over)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct dt_error err = {DT_OK, ""};
    char lock[sizeof(a.sun_path) + 5];
    struct net n;
    FILE *f;
    int fd;

    net_init(&n);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/s", n.dir);
    snprintf(lock, sizeof(lock), "%s.lock", a.sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
    f = fopen(lock, "w");
    cr_assert_not_null(f);
    fprintf(f, "99999999\n");
    fclose(f);
    cr_assert_eq(try_bind(&n, net_ipc(&n, "s"), &err), DT_OK, "%s", err.text);
    net_deinit(&n);
}

Test(bind, a_file_that_is_no_socket_is_left_alone)
{
    struct dt_error err = {DT_OK, ""};
    char path[128];
    struct net n;
    FILE *f;

    net_init(&n);
    snprintf(path, sizeof(path), "%s/data", n.dir);
    f = fopen(path, "w");
    cr_assert_not_null(f);
    fclose(f);
    cr_assert_eq(try_bind(&n, net_ipc(&n, "data"), &err), DT_E_CANT_CREATE);
    cr_assert_eq(unlink(path), 0, "it is still there");
    net_deinit(&n);
}

Test(bind, a_living_socket_without_a_lock_is_left_alone)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct dt_error err = {DT_OK, ""};
    struct net n;
    int fd;

    net_init(&n);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/s", n.dir);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    cr_assert_eq(listen(fd, 1), 0);
    cr_assert_eq(try_bind(&n, net_ipc(&n, "s"), &err), DT_E_ADDRESS_IN_USE);
    close(fd);
    cr_assert_eq(unlink(a.sun_path), 0);
    net_deinit(&n);
}

/* Processes that bind, hold and release the same path by turns never hold it together. */
static int
contend(const char *dir)
{
    struct net n;
    unsigned i, won = 0;
    char path[128], mark[128];

    snprintf(n.dir, sizeof(n.dir), "%s", dir);
    snprintf(mark, sizeof(mark), "%s/mark", dir);
    snprintf(path, sizeof(path), "ipc://%s/s", dir);
    n.context = dt_context_create(true, 1, NULL);
    for (i = 0; i < 200 || won == 0; i++) { /* the others come to an end: each wins some day */
        struct dt_router_options options = {.window = 1};
        struct dt_router *r = dt_router_create(n.context, &options, NULL);
        char bound[DT_MAX_ENDPOINT + 1];
        enum dt_status status = dt_router_bind(r, path, 0, bound, NULL);

        if (status == DT_OK) {
            if (mkdir(mark, 0700) != 0)
                return 1;
            if (access(path + 6, F_OK) != 0)
                return 2;
            rmdir(mark);
            won++;
        } else if (status != DT_E_ADDRESS_IN_USE) {
            return 3;
        }
        dt_router_destroy(r);
    }
    dt_context_destroy(n.context);
    return 0;
}

/* Forks while it has one thread: a child of a process with threads may find a lock of malloc held. */
Test(bind, the_lock_admits_one_at_a_time)
{
    char dir[] = "/tmp/psd-net-XXXXXX";
    pid_t children[3];
    unsigned i;
    int rc;

    cr_assert_not_null(mkdtemp(dir));
    for (i = 0; i < 3; i++) {
        children[i] = fork();
        cr_assert_geq(children[i], 0);
        if (children[i] == 0) {
            alarm(50); /* nothing of it outlives the test */
            _exit(contend(dir));
        }
    }
    for (i = 0; i < 3; i++) {
        cr_assert_eq(waitpid(children[i], &rc, 0), children[i]);
        cr_assert(WIFEXITED(rc) && WEXITSTATUS(rc) == 0, "child %u: status %x", i, (unsigned)rc);
    }
    cr_assert_eq(rmdir(dir), 0, "files were left behind");
}

Test(bind, the_mode_of_an_ipc_socket_is_set)
{
    struct dt_router_options options = {.window = 8};
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *r;
    struct stat st;
    struct net n;

    net_init(&n);
    r = dt_router_create(n.context, &options, NULL);
    cr_assert_eq(dt_router_bind(r, net_ipc(&n, "admin"), 0660, bound, NULL), DT_OK);
    cr_assert_eq(stat(bound + 6, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0660);
    dt_router_destroy(r);
    net_deinit(&n);
}

Test(bind, ipc_paths_have_a_limit)
{
    struct dt_error err = {DT_OK, ""};
    char name[128] = "";
    struct net n;

    net_init(&n);
    memset(name, 'n', 107 - strlen(n.dir) - 1);
    cr_assert_eq(try_bind(&n, net_ipc(&n, name), &err), DT_OK, "107: %s", err.text);
    strcat(name, "n");
    cr_assert_eq(try_bind(&n, net_ipc(&n, name), &err), DT_E_CANT_CREATE);
    cr_assert_not_null(strstr(err.text, "longer than 107"));
    cr_assert_eq(try_bind(&n, net_ipc(&n, "no/such/dir"), &err), DT_E_CANT_CREATE);
    net_deinit(&n);
}

Test(bind, tcp_errors_are_told_apart)
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *first;
    struct dt_error err = {DT_OK, ""};
    struct net n;

    net_init(&n);
    first = net_router(&n, "tcp://127.0.0.1:0", bound);
    cr_assert_eq(strncmp(bound, "tcp://127.0.0.1:", 16), 0, "%s", bound);
    cr_assert_eq(try_bind(&n, bound, &err), DT_E_ADDRESS_IN_USE);
    cr_assert_not_null(strstr(err.text, bound));
    cr_assert_eq(try_bind(&n, "tcp://no-such-host.invalid:2222", &err), DT_E_RESOLVE);
    cr_assert_not_null(strstr(err.text, "no-such-host.invalid"));
    cr_assert_eq(try_bind(&n, "tcp://192.0.2.1:2222", &err), DT_E_CANT_CREATE);
    cr_assert_eq(try_bind(&n, "nonsense", &err), DT_E_RESOLVE);
    dt_router_destroy(first);
    net_deinit(&n);
}

Test(bind, endpoints_are_checked)
{
    static const char *const good[] = {"tcp://a:1", "tcp://*:0",    "tcp://[::1]:65535",
                                       "tcp://h:*", "ipc:///run/x", "ipc://relative"};
    static const char *const bad[] = {
        "",           "tcp://",      "tcp://a",         "tcp://a:", "tcp://:1",  "tcp://a:65536",
        "tcp://a:-1", "tcp://a:1x",  "tcp://::1:5",     "ipc://",   "udp://a:1", "tcp://a b:1",
        "ipc://@abs", "tcp://a/b:1", "tcp://a:00001234"};
    struct dt_error err;
    unsigned i;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        cr_assert_eq(dt_endpoint_check(good[i], &err), DT_OK, "%s", good[i]);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(dt_endpoint_check(bad[i], &err), DT_E_RESOLVE, "%s", bad[i]);
}

Test(bind, local_endpoints_are_known)
{
    cr_assert(dt_endpoint_is_local("ipc:///run/x"));
    cr_assert(dt_endpoint_is_local("tcp://127.0.0.1:1"));
    cr_assert(dt_endpoint_is_local("tcp://127.8.8.8:1"));
    cr_assert(dt_endpoint_is_local("tcp://[::1]:1"));
    cr_assert(dt_endpoint_is_local("tcp://localhost:1"));
    cr_assert_not(dt_endpoint_is_local("tcp://*:1"));
    cr_assert_not(dt_endpoint_is_local("tcp://0.0.0.0:1"));
    cr_assert_not(dt_endpoint_is_local("tcp://192.0.2.1:1"));
    cr_assert_not(dt_endpoint_is_local("tcp://no-such-host.invalid:1"));
    cr_assert_eq(dt_endpoint_resolve("tcp://no-such-host.invalid:1", NULL), DT_E_RESOLVE);
    cr_assert_eq(dt_endpoint_resolve("tcp://localhost:1", NULL), DT_OK);
}

Test(bind, peers_of_an_endpoint)
{
    char out[64];

    cr_assert_eq(dt_endpoint_peer("tcp://host:2222", "49123", out, sizeof(out)), DT_OK);
    cr_assert_str_eq(out, "tcp://host:49123");
    cr_assert_eq(dt_endpoint_peer("tcp://[::1]:2222", "1", out, sizeof(out)), DT_OK);
    cr_assert_str_eq(out, "tcp://[::1]:1");
    cr_assert_eq(dt_endpoint_peer("ipc:///x", ".1", out, sizeof(out)), DT_OK);
    cr_assert_str_eq(out, "ipc:///x.1");
    cr_assert_eq(dt_endpoint_peer("ipc:///x", "", out, sizeof(out)), DT_OK);
    cr_assert_str_eq(out, "ipc:///x");
    cr_assert_eq(dt_endpoint_peer("ipc:///x", "/../y", out, sizeof(out)), DT_E_PROTOCOL);
    cr_assert_eq(dt_endpoint_peer("tcp://host:2222", "0", out, sizeof(out)), DT_E_PROTOCOL);
    cr_assert_eq(dt_endpoint_peer("tcp://host:2222", "70000", out, sizeof(out)), DT_E_PROTOCOL);
    cr_assert_eq(dt_endpoint_peer("tcp://host:2222", "49123", out, 8), DT_E_PROTOCOL);
}

/* Hosts, with one free port; what dt_endpoint_meets says is what a bind beside the other one finds. */
Test(bind, endpoints_that_meet_cannot_be_bound_side_by_side)
{
    static const struct {
        const char *first, *second;
        bool meets;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "localhost", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"127.0.0.1", "[::1]", false},
        {"127.0.0.1", "0.0.0.0", true},
        {"127.0.0.1", "*", true},
        {"[::]", "127.0.0.1", true},
        {"[::1]", "*", true},
        {"[::1]", "0.0.0.0", false},
        {"127.0.0.1", "[::ffff:127.0.0.1]", true},
        {"[::1]", "[::ffff:127.0.0.1]", false},
        {"[::ffff:127.0.0.1]", "0.0.0.0", true},
    };
    char bound[DT_MAX_ENDPOINT + 1], second[64];
    struct dt_error err;
    struct net n;
    unsigned i;

    net_init(&n);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool meets = cases[i].meets;
        struct dt_router *router;

        snprintf(second, sizeof(second), "tcp://%s:*", cases[i].first);
        router = net_router(&n, second, bound);
        snprintf(second, sizeof(second), "tcp://%s%s", cases[i].second, strrchr(bound, ':'));
        cr_expect_eq(dt_endpoint_meets(bound, second), meets, "%s, %s", bound, second);
        cr_expect_eq(dt_endpoint_meets(second, bound), meets, "%s, %s", second, bound);
        cr_expect_eq(try_bind(&n, second, &err), meets ? DT_E_ADDRESS_IN_USE : DT_OK, "%s, %s",
                     bound, second);
        dt_router_destroy(router);
    }
    cr_expect_not(dt_endpoint_meets("tcp://h:0", "tcp://h:0"), "any that is free");
    cr_expect_not(dt_endpoint_meets("tcp://h:*", "tcp://h:0"));
    net_deinit(&n);
}

Test(bind, paths_that_meet)
{
    cr_expect(dt_endpoint_meets("ipc:///tmp/q", "ipc:///tmp/q"));
    cr_expect(dt_endpoint_meets("ipc:///tmp/q", "ipc:///tmp/../tmp//q"));
    cr_expect(dt_endpoint_meets("ipc://q", "ipc://./q"));
    cr_expect(dt_endpoint_meets("ipc:///tmp/q", "ipc:///tmp/q.lock"), "the lock of the first");
    cr_expect(dt_endpoint_meets("ipc:///tmp/q.lock", "ipc:///tmp/q"));
    cr_expect_not(dt_endpoint_meets("ipc:///tmp/q", "ipc:///tmp/q.1"));
    cr_expect_not(dt_endpoint_meets("ipc:///tmp/q", "ipc:///tmp/qq.lock"));
    cr_expect_not(dt_endpoint_meets("ipc:///tmp/q", "ipc:///q"));
    cr_expect_not(dt_endpoint_meets("ipc:///tmp/q", "tcp://127.0.0.1:5000"));
}

static int
connect_raw(const char *bound)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_port = htons((uint16_t)atoi(strrchr(bound, ':') + 1));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* Is the connection closed by the other side, within the handshake limit and some? */
static bool
is_closed_by_peer(int fd)
{
    struct timeval patience = {.tv_sec = 10};
    char rest[512];
    ssize_t n;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    do
        n = recv(fd, rest, sizeof(rest), 0);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

Test(bind, peers_that_do_not_speak_zmtp_are_closed_and_give_no_message)
{
    static const struct {
        const char *bytes;
        size_t n;
    } raw[] = {
        {"GET / HTTP/1.1\r\nHost: psd\r\n\r\n", 29},
        {"\x01\x00\x02\x00xxxxx", 9},     /* unversioned ZMTP: a message in nine bytes */
        {"\xff\0\0\0\0\0\0\0\1\x7f", 10}, /* half a greeting */
        {"\xff\0\0\0\0\0\0\0\1\x7f\3\0PLAIN", 17},
        {"\xff\0\0\0\0\0\0\0\1\x7f\1\0", 12}, /* ZMTP 2 */
        {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16},
        {"", 0},
    };
    enum { N = sizeof(raw) / sizeof(raw[0]) };
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct net n;
    int fds[N];
    unsigned i;

    signal(SIGPIPE, SIG_IGN);
    net_init(&n);
    router = net_router(&n, "tcp://127.0.0.1:0", bound);
    for (i = 0; i < N; i++) {
        fds[i] = connect_raw(bound);
        cr_assert_eq(send(fds[i], raw[i].bytes, raw[i].n, MSG_NOSIGNAL), (ssize_t)raw[i].n);
    }
    cr_assert(net_is_quiet(router, 300));
    dealer = net_dealer(&n, bound);
    dt_dealer_send(dealer, "fine", 4, NULL, 0);
    net_router_recv(router, &m);
    cr_assert(net_is_text(m.header, "fine"), "others go on");
    dt_message_deinit(&m);
    for (i = 0; i < N; i++) {
        cr_assert(is_closed_by_peer(fds[i]), "peer %u is still connected", i);
        close(fds[i]);
    }
    cr_assert(net_is_quiet(router, 100));
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    net_deinit(&n);
}

/* A fixed sequence of random bytes, behind a right greeting too. */
Test(bind, random_bytes_give_no_message)
{
    static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL";
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    uint32_t state = 12345;
    unsigned char bytes[300];
    struct net n;
    unsigned i, k;

    net_init(&n);
    router = net_router(&n, "tcp://127.0.0.1:0", bound);
    for (i = 0; i < 100; i++) {
        int fd = connect_raw(bound);

        for (k = 0; k < sizeof(bytes); k++) {
            state = state * 1664525 + 1013904223;
            bytes[k] = (unsigned char)(state >> 24);
        }
        if (i % 2)
            send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL);
        send(fd, bytes, 1 + state % sizeof(bytes), MSG_NOSIGNAL);
        close(fd);
    }
    cr_assert(net_is_quiet(router, 300));
    dt_router_destroy(router);
    net_deinit(&n);
}

static atomic_int n_signals;

static void
on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

/* libzmq's threads have all signals blocked: with the signal blocked here too, nobody takes it. */
Test(bind, threads_of_the_context_take_no_signals)
{
    struct sigaction action = {.sa_handler = on_signal};
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    sigset_t usr1, before;
    struct net n;

    net_init(&n);
    router = net_router(&n, "tcp://127.0.0.1:0", bound);
    sigaction(SIGUSR1, &action, NULL);
    sigprocmask(SIG_BLOCK, NULL, &before);
    cr_assert_not(sigismember(&before, SIGUSR1), "the mask was restored");
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    kill(getpid(), SIGUSR1);
    dt_sleep_ms(100);
    cr_assert_eq(atomic_load(&n_signals), 0);
    pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    cr_assert_eq(atomic_load(&n_signals), 1);
    dt_router_destroy(router);
    net_deinit(&n);
}

Test(bind, contexts_come_and_go)
{
    unsigned i;

    for (i = 0; i < 20; i++)
        dt_context_destroy(dt_context_create(i % 2, 1, NULL));
    dt_context_destroy(NULL);
    dt_router_destroy(NULL);
    dt_dealer_destroy(NULL, 0);
}
