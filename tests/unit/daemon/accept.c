/* accept.c - connections that come while no descriptor is left. */
#include "psd/daemon/accept.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(accept, .timeout = 30);

enum { CLIENTS = 3 };

struct door {
    int listener;
    int clients[CLIENTS];
    rlim_t before;
};

static void
door_open(struct door *d)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);

    d->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    cr_assert_eq(bind(d->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    cr_assert_eq(listen(d->listener, CLIENTS), 0);
    cr_assert_eq(getsockname(d->listener, (struct sockaddr *)&a, &len), 0);
    for (int i = 0; i < CLIENTS; i++) {
        d->clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        cr_assert_eq(connect(d->clients[i], (struct sockaddr *)&a, sizeof(a)), 0);
    }
}

static void
door_close(struct door *d)
{
    for (int i = 0; i < CLIENTS; i++)
        close(d->clients[i]);
    close(d->listener);
}

/* From now on no descriptor is to be had (or the limit is as before). */
static void
set_short(struct door *d, bool yes)
{
    struct rlimit limit;
    int lowest = yes ? dup(STDERR_FILENO) : -1;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (yes) {
        d->before = limit.rlim_cur;
        close(lowest);
    }
    limit.rlim_cur = yes ? (rlim_t)lowest : d->before;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

Test(accept, is_as_ever_while_descriptors_are_left)
{
    struct door d;

    door_open(&d);
    int got = accept4(d.listener, NULL, NULL, SOCK_CLOEXEC);
    cr_expect_geq(got, 0);
    cr_expect_eq(accept_turned_away(), 0);
    close(got);
    door_close(&d);
}

Test(accept, turns_away_with_the_reserve)
{
    struct door d;
    char byte;

    door_open(&d);
    cr_assert(accept_reserve());
    set_short(&d, true);
    for (int i = 0; i < CLIENTS; i++) {
        cr_expect_eq(accept4(d.listener, NULL, NULL, SOCK_CLOEXEC), -1);
        cr_expect_eq(errno, ECONNABORTED);
        cr_expect_eq(read(d.clients[i], &byte, 1), 0, "it is closed");
    }
    cr_expect_eq(accept4(d.listener, NULL, NULL, SOCK_CLOEXEC), -1);
    cr_expect(errno == EAGAIN || errno == EMFILE || errno == ENFILE);
    bool reserve = accept_reserve();
    set_short(&d, false);
    cr_expect(reserve, "it came back");
    cr_expect_eq(accept_turned_away(), CLIENTS);
    accept_release();
    door_close(&d);
}

Test(accept, without_a_reserve_it_never_says_EMFILE)
{
    struct door d;

    door_open(&d);
    set_short(&d, true);
    int got = accept4(d.listener, NULL, NULL, SOCK_CLOEXEC);
    int error = errno;
    bool reserve = accept_reserve();
    set_short(&d, false);
    cr_expect_eq(got, -1);
    cr_expect_eq(error, ENFILE, "%s", strerror(error));
    cr_expect_not(reserve);
    cr_expect_eq(accept_turned_away(), 0);
    door_close(&d);
}
