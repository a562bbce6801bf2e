/*
 * notify.c - what a service manager is told, seen through a fake NOTIFY_SOCKET.
 */
#include "psd/daemon/notify.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

TestSuite(notify, .timeout = 80);

static char path[64];

/* A datagram socket at `path` ('@': abstract). */
static int
open_manager(bool abstract)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len;

    snprintf(path, sizeof(path), "%spsd-notify-%d", abstract ? "@" : "/tmp/", (int)getpid());
    strcpy(a.sun_path, path);
    if (abstract)
        a.sun_path[0] = 0;
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, len), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    return fd;
}

static void
close_manager(int fd)
{
    close(fd);
    if (path[0] == '/')
        unlink(path);
}

static const char *
receive(int fd)
{
    static char text[512];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = 0;
    return text;
}

static void
talk(bool abstract)
{
    int fd = open_manager(abstract);
    struct notify n;

    notify_open(&n);
    cr_assert(n.enabled);
    notify_ready(&n);
    cr_expect_str_eq(receive(fd), "READY=1");
    notify_status(&n, "1 job, 2 workers, step 7", 1000);
    cr_expect_str_eq(receive(fd), "STATUS=1 job, 2 workers, step 7");
    notify_status(&n, "1 job, 2 workers, step 7", 20999);
    cr_expect_str_eq(receive(fd), "", "the same status is not sent again");
    notify_status(&n, "1 job, 2 workers, step 7", 21000);
    cr_expect_str_eq(receive(fd), "STATUS=1 job, 2 workers, step 7", "but after a while");
    notify_watchdog(&n);
    cr_expect_str_eq(receive(fd), "WATCHDOG=1");
    notify_stopping(&n, 5000);
    cr_expect(strstr(receive(fd), "STOPPING=1"));
    notify_reloading(&n);
    cr_expect(strstr(receive(fd), "RELOADING=1\nMONOTONIC_USEC="));
    close_manager(fd);
}

Test(notify, talks_to_a_socket_in_the_file_system)
{
    talk(false);
}

Test(notify, talks_to_an_abstract_socket)
{
    talk(true);
}

Test(notify, own_datagrams_reach_both_kinds)
{
    int i;

    for (i = 0; i < 2; i++) {
        int fd = open_manager(i == 1);

        cr_expect(notify_datagram(path, "READY=1"));
        cr_expect_str_eq(receive(fd), "READY=1");
        close_manager(fd);
        cr_expect_not(notify_datagram(path, "READY=1"), "nobody is there");
    }
    cr_expect_not(notify_datagram("relative", "X=1"));
    cr_expect_not(notify_datagram("", "X=1"));
}

Test(notify, without_a_socket_nothing_happens)
{
    struct notify n;

    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "1000000", 1);
    notify_open(&n);
    cr_assert_not(n.enabled);
    cr_assert_eq(n.watchdog_ms, 0);
    notify_ready(&n);
}

Test(notify, watchdog_is_for_the_process_that_is_named)
{
    struct notify n;
    char pid[24];

    setenv("NOTIFY_SOCKET", "/nonexistent", 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    unsetenv("WATCHDOG_PID");
    notify_open(&n);
    cr_expect_eq(n.watchdog_ms, 3000);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    notify_open(&n);
    cr_expect_eq(n.watchdog_ms, 3000);
    setenv("WATCHDOG_PID", "1", 1);
    notify_open(&n);
    cr_expect_eq(n.watchdog_ms, 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "nonsense", 1);
    notify_open(&n);
    cr_expect_eq(n.watchdog_ms, 0);
}
