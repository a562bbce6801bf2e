/*
 * job.h - a job as one shard sees it, and the little that all shards share.
 *
 * struct job is a replica: membership, state and parameters are equal on all shards because shard 0
 * posts every change to all; variables hold the slices at home here.
 * struct job_shared has atomics only (and the immutable declarations): made and freed by shard 0,
 * freed after every shard has acknowledged that it let the job go.
 */
#ifndef PSD_STORE_JOB_H
#define PSD_STORE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/wire/params.h"
#include "psd/store/membership.h"
#include "psd/store/variable.h"

enum job_counter {
    JOB_PUSHES,  /* push messages */
    JOB_APPLIED, /* slices, by fate */
    JOB_ACCUMULATED,
    JOB_STALE,
    JOB_DUPLICATE,
    JOB_AHEAD,
    JOB_REFUSED,
    JOB_PARTIAL,      /* messages taken in part */
    JOB_NOT_FINITE,   /* messages */
    JOB_DROPPED,      /* gradients in rounds that no rank counted any more */
    JOB_PULLS,        /* pull messages */
    JOB_PUSHED_BYTES, /* of gradients, resent ones too */
    JOB_PULLED_BYTES, /* of values */
    JOB_LOST,         /* ranks struck */
    JOB_JOINED,
    JOB_LEFT,
    JOB_N_COUNTERS
};
extern const char *const job_counter_names[JOB_N_COUNTERS];

struct job_shared {
    _Atomic uint64_t step;      /* sync: largest version of any slice; else finished worker steps */
    _Atomic uint64_t stop_step; /* SET by a worker; JOB_NO_STOP: none */
    _Atomic uint64_t counters[JOB_N_COUNTERS];
    _Atomic uint64_t
        staleness_bound; /* ssp: s. It may change while shards run: then MAIL_CLOCK without
                                       * a rank makes every shard look at who waits */
    _Atomic uint64_t clocks[DT_MAX_RANKS]; /* ssp: a rank's highest clock at any slice */
    _Atomic uint32_t n_initialised;        /* slices that have initial values */
    _Atomic int64_t
        last_seen_ms[DT_MAX_RANKS]; /* when a rank's last message came, in psd's running time */
    struct declared *declared;      /* owned; set once by shard 0 before it is posted */
};

#define JOB_NO_STOP UINT64_MAX
#define JOB_NO_HOLD UINT64_MAX

struct job_shared *job_shared_create(void);
void job_shared_destroy(struct job_shared *s);
void job_shared_raise_step(struct job_shared *s, uint64_t step);
void job_shared_raise_clock(struct job_shared *s, uint32_t rank, uint64_t clock);

enum job_state { JOB_OPEN, JOB_COMPLETE, JOB_FAILED };

struct job {
    uint64_t id;
    char name[DT_MAX_NAME + 1];
    struct dt_job_params params;
    enum job_state state;
    char reason[DT_MAX_TEXT + 1]; /* JOB_FAILED */
    bool initialised;
    struct membership membership;
    struct setting max_staleness; /* the operator's, beside params.max_staleness */
    uint64_t hold; /* sync: rounds of this step and later stay open; JOB_NO_HOLD: none do */
    struct job_shared *shared; /* borrowed from shard 0 */
    struct dt_pool *pool;      /* borrowed from the shard */
    uint32_t n_variables;
    struct variable *variables; /* owned */
    uint32_t n_slices;          /* at home here */
    bool has_nonfinite;         /* nonfinite.h: some of them, since this was set to false */
};

struct job *job_create(uint64_t id, const char *name, const struct dt_job_params *params,
                       struct job_shared *shared, struct dt_pool *pool);
void job_destroy(struct job *job); /* NULL-safe */
/* Make the variables of shared->declared. False when memory is short (what was made stays with the job). */
bool job_declare(struct job *job, uint32_t shard);
/* The slice, if its home is here; NULL else. */
struct slice *job_find_slice(const struct job *job, uint32_t variable, uint32_t slice);
void job_count(struct job *job, enum job_counter counter, uint64_t n);

#endif
