/*
 * notify.c - sd_notify(3) through libsystemd, or by our own datagram where it is not built in.
 * Runs on the main thread; never blocks and never fails aloud: the manager is optional.
 */
#include "psd/daemon/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "proto/base/parse.h"

#define STATUS_REPEAT_MS 20000
#define STOP_SLACK_MS 2000 /* from the last log line to the end of the process */

bool
notify_datagram(const char *path, const char *text)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    ssize_t sent;
    int fd;

    if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
        return false;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = 0;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
    return sent == (ssize_t)strlen(text);
}

static void
send_text(struct notify *n, const char *text)
{
    if (!n->enabled)
        return;
#ifdef HAVE_SYSTEMD
    (void)sd_notify(0, text);
#else
    (void)notify_datagram(getenv("NOTIFY_SOCKET"), text);
#endif
}

/* WATCHDOG_PID, when set, must be us: the variables are inherited by children. */
static int64_t
read_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t us, id;

    if (!usec || !dt_parse_u64(usec, &us) || us < 2000 || us > UINT64_C(1) << 50)
        return 0;
    if (pid && (!dt_parse_u64(pid, &id) || id != (uint64_t)getpid()))
        return 0;
    return (int64_t)(us / 1000);
}

void
notify_open(struct notify *n)
{
    const char *path = getenv("NOTIFY_SOCKET");

    memset(n, 0, sizeof(*n));
    n->enabled = path && path[0];
    n->watchdog_ms = n->enabled ? read_watchdog_ms() : 0;
}

void
notify_ready(struct notify *n)
{
    send_text(n, "READY=1");
}

void
notify_reloading(struct notify *n)
{
    struct timespec ts;
    char text[64];

    clock_gettime(CLOCK_MONOTONIC, &ts);
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
    send_text(n, text);
}

void
notify_stopping(struct notify *n, int64_t timeout_ms)
{
    char text[96];

    snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=%lld",
             (long long)(timeout_ms + STOP_SLACK_MS) * 1000);
    send_text(n, text);
}

void
notify_watchdog(struct notify *n)
{
    send_text(n, "WATCHDOG=1");
}

void
notify_status(struct notify *n, const char *status, int64_t now_ms)
{
    char text[sizeof(n->status) + 8];

    if (!n->enabled || (strcmp(n->status, status) == 0 && now_ms - n->status_ms < STATUS_REPEAT_MS))
        return;
    n->status_ms = now_ms;
    snprintf(n->status, sizeof(n->status), "%s", status);
    snprintf(text, sizeof(text), "STATUS=%s", n->status);
    send_text(n, text);
}
