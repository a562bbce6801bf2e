/*
 * driver.h - who drives the sockets: a token, never a lock held across a poll. Private.
 *
 * A thread that waits takes the token when it is free and turns the loop itself; when its wait is over
 * it hands the token to another waiter, else to the background thread, which sleeps without polling
 * while nothing is outstanding.
 */
#ifndef WORKER_LIB_DRIVER_H
#define WORKER_LIB_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/net/router.h"

struct dtw_client;

struct driver {
    pthread_mutex_t lock; /* guards the whole client */
    pthread_cond_t waiters;
    pthread_cond_t background;
    pthread_t thread;
    bool started;
    bool stop;
    bool taken;             /* the token */
    bool background_drives; /* it is the background thread's */
    unsigned n_waiting;
    bool news;                   /* something ended in this turn: do not sleep in the poll */
    int64_t due_ms;              /* the next thing that time brings */
    int64_t background_until_ms; /* the background thread sleeps until then */
    int wake_fd;                 /* eventfd in the driver's poll set */
    struct dt_poll_item *items;  /* owned; used by the token's holder */
    unsigned n_items, items_cap;
};

enum wait_end { WAIT_OVER, WAIT_TIMEOUT, WAIT_INTERRUPTED };
typedef bool driver_over_fn(const struct dtw_client *client, const void *arg);

bool driver_init(struct driver *d);
bool driver_start(struct dtw_client *client); /* the background thread, all signals blocked */
void driver_stop(struct driver *d);           /* joins it; NULL-safe for one that never started */
void driver_deinit(struct driver *d);

/* Turn the loop, or wait for the thread that does, until over() or the deadline. Lock held. */
enum wait_end driver_wait(struct dtw_client *client, driver_over_fn *over, const void *arg,
                          int64_t deadline_ms, bool interruptible);
/* Something was added: the loop has to look. `alone`: the caller will not wait for it now, so the
 * background thread takes it where nobody drives. Lock held. */
void driver_wake(struct dtw_client *client, bool alone);
/* A waiter's condition may be true now. Lock held. */
void driver_news(struct driver *d);

#endif
