/*
 * shard_thread.h - one service thread: its poll set, its turn, the delivery of its outbox.
 *
 * Thread rule: create, start, stop, join and destroy are called by the main thread; everything that
 * the thread publishes is in struct shard_report or the turn counter.
 */
#ifndef PSD_DAEMON_SHARD_THREAD_H
#define PSD_DAEMON_SHARD_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/net/router.h"
#include "psd/daemon/mailbox.h"
#include "psd/serve/serve.h"

#define SHARD_SUMMARY_BYTES 128

/* What shard 0 tells the main thread; `fd` (an eventfd) is written when once or shutdown changes. */
struct shard_report {
    int fd;          /* borrowed */
    bool watch_once; /* psd --once */
    atomic_int once; /* enum once_state */
    atomic_bool shutdown;
    pthread_mutex_t lock; /* for summary */
    char summary[SHARD_SUMMARY_BYTES];
};

struct shard_thread {
    uint32_t index;
    struct shard *shard;                       /* owned */
    struct stages *stages;                     /* borrowed: the shard's */
    struct dt_router *routers[N_PEER_CLASSES]; /* borrowed; NULL: none */
    struct mailboxes *mailboxes;               /* shared by all shard threads */
    struct shard_report *report;               /* borrowed; NULL but on shard 0 */
    int wake_fd;                               /* owned eventfd; also what `stop` writes */
    int idle_ms;                               /* longest sleep when nothing goes on */
    int64_t stop_wait_ms;                      /* acknowledgements of GOODBYE are awaited so long */
    atomic_uint_fast64_t turns;                /* for the watchdog; any thread may read */
    atomic_bool stop;
    bool started;
    pthread_t thread;
    /* the thread's own */
    struct outbox out;
    struct dt_poll_item items[N_PEER_CLASSES + 2];
    unsigned n_items, n_routers;
    enum peer_class classes[N_PEER_CLASSES]; /* of items[0 .. n_routers) */
    unsigned first;                          /* router that comes first in this turn */
    int64_t busy_until_ms;
    int64_t last_tick_ms;
    int64_t last_summary_ms;
    int64_t stop_deadline_ms; /* 0: not stopping */
    bool mail_waits;
};

/* Fills `t`; wake_fd and shard are made here. false when memory or descriptors are short. */
bool shard_thread_init(struct shard_thread *t, struct serve_shared *shared, uint32_t index);
enum dt_status shard_thread_start(struct shard_thread *t, struct dt_error *err);
/* Asks, and lets the thread wait so long for acknowledgements of GOODBYE; shard_thread_join waits. */
void shard_thread_stop(struct shard_thread *t, int64_t wait_ms);
void shard_thread_join(struct shard_thread *t);
/* After all threads are joined; shard 0 last (others may hold what it owns). Leaves wake_fd open. */
void shard_thread_destroy_shard(struct shard_thread *t);
/* After the context is gone: libzmq's callbacks may write wake_fd until then. */
void shard_thread_deinit(struct shard_thread *t);

#endif
