/*
 * shard.h - the private shape of a shard: sessions, job views, and on shard 0 the control state.
 */
#ifndef PSD_SERVE_SHARD_H
#define PSD_SERVE_SHARD_H

#include <stdatomic.h>

#include <uthash.h>

#include "proto/base/log.h"
#include "psd/serve/mail.h"
#include "psd/serve/reply.h"
#include "psd/serve/serve.h"
#include "psd/store/job.h"

struct control;
struct session;
struct parked;
struct untaken;

struct live_limits { /* of serve_limits; the four need not change at one moment */
    _Atomic uint32_t window;
    _Atomic uint64_t window_bytes, max_session_bytes, memory_quota;
};

struct serve_shared {
    struct serve_config config; /* its limits: as they were at the start */
    struct live_limits limits;
    uint64_t incarnation;
    _Atomic int64_t running_ms; /* time in which psd turned; leases and round timeouts use it */
};

struct window { /* what may be under way on a connection */
    uint32_t messages;
    uint64_t bytes;
};

struct attached {  /* what every shard knows of a rank's present life */
    uint64_t life; /* 0: none */
    unsigned char uuid[DT_UUID_BYTES];
    struct session *session; /* borrowed; NULL: no connection here */
    struct window window;    /* of this life, whatever connections it has */
    uint32_t bad_in_row;     /* refused pushes */
    bool ended;              /* the life has left or was turned away: no push of it counts */
};

struct view { /* a job on this shard */
    uint64_t id;
    struct job *job; /* owned */
    uint32_t n_ranks;
    struct attached *ranks; /* owned */
    uint32_t grant_rank;    /* may send INIT; DT_NO_RANK: nobody */
    uint64_t grant_life;
    struct session *sessions; /* list, owned by the shard's table */
    UT_hash_handle hh;        /* by id */
};

struct shard {
    struct serve_shared *shared;
    uint32_t index;
    int wake_fd;
    struct dt_pool *pool;     /* owned */
    struct session *sessions; /* hash by peer class and route; owned */
    uint32_t n_sessions;
    uint64_t n_opened;       /* sessions so far */
    struct session *queued;  /* list: those with replies that wait for room */
    struct untaken *untaken; /* list; owned */
    uint64_t next_session;
    struct view *views;      /* hash by id; owned */
    struct control *control; /* owned; shard 0 only */
    bool stopping;
    int64_t last_tick_ms;
    int64_t goodbye_ms;  /* when GOODBYE was said last */
    int64_t sessions_ms; /* when idle sessions were looked for last */
    struct stages stages;
};

static inline int64_t
shard_running_ms(const struct shard *s)
{
    return atomic_load_explicit(&s->shared->running_ms, memory_order_relaxed);
}

/* Locking none: the shard that serves a rank; readers are served by shard 0. */
static inline uint32_t
shard_of_rank(const struct shard *s, uint32_t rank)
{
    return rank == DT_NO_RANK ? 0 : rank % s->shared->config.n_shards;
}

static inline struct window
shard_window(const struct shard *s)
{
    const struct live_limits *l = &s->shared->limits;

    return (struct window){atomic_load_explicit(&l->window, memory_order_relaxed),
                           atomic_load_explicit(&l->window_bytes, memory_order_relaxed)};
}

struct view *view_create(struct shard *shard,
                         const struct mail *open);         /* NULL when memory is short */
void view_destroy(struct shard *shard, struct view *view); /* ends its sessions */
struct view *view_find(const struct shard *shard, uint64_t id);
struct view *view_find_name(const struct shard *shard,
                            const char *name); /* the newest of that name */
struct attached *view_require_rank(struct view *view,
                                   uint32_t rank); /* NULL when memory is short */
uint64_t view_step(const struct view *view);

static inline bool
view_is_racy(const struct view *v)
{
    return v->job->params.locking == DT_LOCK_NONE;
}

static inline bool
view_is_ssp(const struct view *v)
{
    return v->job->params.consistency == DT_SSP;
}

/* Tells shard 0 of slices that hold NaN or Inf. nonfinite.c */
void nonfinite_tick(struct shard *shard, struct outbox *out);

/* Close what is due: every open round of the job that membership now allows, and wake who waits. */
void view_settle(struct shard *shard, struct view *view, struct outbox *out);

#endif
