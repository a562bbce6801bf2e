/*
 * notify.h - messages to the service manager (sd_notify(3)): NOTIFY_SOCKET, WATCHDOG_USEC.
 *
 * Without NOTIFY_SOCKET every call does nothing. Main thread.
 */
#ifndef PSD_DAEMON_NOTIFY_H
#define PSD_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct notify {
    bool enabled;
    int64_t watchdog_ms; /* 0: no watchdog for this process; else ping at half of it */
    char status[160];    /* told last */
    int64_t status_ms;   /* when */
};

void notify_open(struct notify *n);
void notify_ready(struct notify *n);
void notify_reloading(struct notify *n); /* notify_ready follows when it is done */
void notify_stopping(struct notify *n,
                     int64_t timeout_ms); /* at most so long, whatever the unit says */
void notify_watchdog(struct notify *n);
/* Sent when it has changed, and again after 20 s (a manager may have been restarted). */
void notify_status(struct notify *n, const char *status, int64_t now_ms);

/* What notify uses without libsystemd: one datagram to `path` ("@name": abstract). */
bool notify_datagram(const char *path, const char *text);

#endif
