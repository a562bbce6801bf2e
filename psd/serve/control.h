/*
 * control.h - shard 0's knowledge: jobs, workers, leases, grants. Only shard 0 has it.
 */
#ifndef PSD_SERVE_CONTROL_H
#define PSD_SERVE_CONTROL_H

#include "proto/wire/hello.h"
#include "psd/serve/pending.h"
#include "psd/serve/shard.h"

enum worker_state {
    WORKER_MISSING, /* expected, never came */
    WORKER_JOINING, /* registered, not counted yet */
    WORKER_MEMBER,
    WORKER_LEFT,
    WORKER_LOST, /* lease, kick, round-timeout, or it missed its start */
};

struct worker {
    enum worker_state state;
    bool known;       /* false: a gap in the table, not a worker */
    bool no_step;     /* left without having taken a step */
    bool declared;    /* in this life: its declarations are the job's */
    bool turned_away; /* this life ended with declarations that differ from the job's */
    bool was_known;   /* before this life, as the next */
    enum worker_state was;
    unsigned char uuid[DT_UUID_BYTES];
    uint64_t life;
    char host[65];
    uint64_t pid;
    uint64_t first;
    uint64_t last;   /* after LEAVE; DT_NO_VERSION: none */
    uint64_t clock;  /* asynchronous: steps that it has finished in this life */
    bool init_waits; /* an INIT_DONE is parked */
    struct reply_to init_to;
    bool step_waits; /* a WAIT_STEP is parked, */
    bool step_idle;  /* and the worker has taken no step since then */
    uint64_t step_awaited;
    struct reply_to step_to;
};

#define CONTROL_MAX_SETS 16

struct control_job {
    struct control_job *next;
    uint64_t id;
    struct view *view;         /* borrowed: shard 0's own */
    struct job_shared *shared; /* owned */
    uint64_t opened_life;      /* lives up to this one are of older jobs */
    uint32_t task;
    uint32_t n_workers;
    struct worker *workers; /* owned; by rank */
    uint32_t n_step_waits;  /* of them that have a WAIT_STEP parked */
    bool closing;           /* replaced by --fresh; freed when all shards let go */
    bool completing;
    bool came;            /* at least one worker was there */
    bool start_missed;    /* start-timeout has been dealt with */
    uint32_t grant_rank;  /* DT_NO_RANK: nobody initialises */
    int64_t opened_ms;    /* running time */
    int64_t named_ms;     /* missing ranks were last named */
    int64_t suspended_ms; /* since when nobody is there; -1 */
    bool set_under_way;   /* shards are agreeing on a change */
    uint32_t n_sets;
    struct control_set *sets; /* owned; the operator's last changes, CONTROL_MAX_SETS at most */
    uint32_t n_nonfinite;
    struct nonfinite_report *nonfinite; /* owned; one a variable */
};

struct control {
    struct control_job *jobs;
    uint32_t n_jobs;
    struct pending *pendings;
    uint64_t next_seq;
    uint64_t next_job;
    uint64_t last_life; /* of all jobs: a life tells which job it is of */
    bool shutdown;
};

struct control *control_create(void);
void control_destroy(struct shard *shard);

struct control_job *control_find(const struct shard *shard, uint64_t id);
struct control_job *control_find_name(const struct shard *shard, const char *name);
/* Open a job and tell all shards; NULL with *err (DT_R_QUOTA). */
struct control_job *control_open(struct shard *shard, const struct dt_hello *hello,
                                 const struct dt_job_params *params, int64_t now,
                                 struct outbox *out, struct dt_error *err);
/* Let a job go on all shards (--fresh, or abandoned). The entry may be freed at once. */
void control_close(struct shard *shard, struct control_job *job, int64_t now, struct outbox *out);
struct worker *control_require_worker(struct control_job *job,
                                      uint32_t rank); /* NULL when memory is short */

bool worker_is_live(const struct worker *w);
uint32_t control_n_live(const struct control_job *job);
bool control_is_suspended(const struct control_job *job);

/* The worker is out: struck everywhere, policy --on-loss applied, grant passed on. `why` is a sentence's end. */
void control_lose(struct shard *shard, struct control_job *job, uint32_t rank, const char *why,
                  int64_t now, struct outbox *out);
/* Its declarations differ from the job's: the rank is what it was before this life, and whoever waits for
 * it goes on waiting for the right one. No effect on a life that has declared what the job has. */
void control_turn_away(struct shard *shard, struct control_job *job, uint32_t rank, int64_t now,
                       struct outbox *out);
bool control_is_turned_away(const struct control_job *job, uint32_t rank);
void control_fail(struct shard *shard, struct control_job *job, const char *reason, int64_t now,
                  struct outbox *out);
/* Has every rank left, been lost or missed its start, and one left? Then the job completes; `p` (may be
 * NULL, taken) is done when all shards know. Returns false (p not taken) when the job goes on. */
bool control_complete(struct shard *shard, struct control_job *job, struct pending *p, int64_t now,
                      struct outbox *out);
/* The holder of the init grant is gone: the next that waits gets it. */
void control_pass_grant(struct shard *shard, struct control_job *job, int64_t now,
                        struct outbox *out);
void control_grant(struct shard *shard, struct control_job *job, uint32_t rank,
                   const struct reply_to *to, int64_t now, struct outbox *out);
/* Answer the WAIT_STEPs whose step has come, or cannot come: past the stop step, or with nobody there who
 * takes steps. clock.c */
void control_wake_steps(struct control_job *job, struct outbox *out);
/* Its WAIT_STEP is parked, or no longer. */
void control_set_step_wait(struct control_job *job, struct worker *w, bool waits);
/* End all waits of the job on shard 0 (INIT_DONE, WAIT_STEP) with a status. */
void control_refuse_waits(struct control_job *job, enum dt_status status, const char *text,
                          struct outbox *out);
/* set.c: is the variable here, with a rate, and is it meant? */
bool set_concerns(const struct control_set *set, const struct variable *v);
/* A shard's report: logged and kept, the first of each variable. nonfinite.c */
void control_nonfinite(struct shard *shard, const struct mail *report);
/* Appends ADMIN_STATUS's "nonfinite" of the job, at most 256. */
void nonfinite_write(const struct control_job *job, struct dt_buffer *body);
/* lease.c: leases, start-timeout. */
void control_tick(struct shard *shard, int64_t now, struct outbox *out);

#endif
