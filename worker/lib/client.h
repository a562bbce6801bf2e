/*
 * client.h - the client, its ps tasks and what its modules share. Private to libdtworker.
 *
 * Everything here is guarded by client->driver.lock; sockets are used only by the thread that holds
 * the driver token as well (driver.h). The lock is never held across a poll.
 */
#ifndef WORKER_LIB_CLIENT_H
#define WORKER_LIB_CLIENT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "proto/net/dealer.h"
#include "proto/wire/params.h"
#include "worker/lib/declare.h"
#include "worker/lib/driver.h"
#include "worker/lib/dtworker.h"

struct connection;

struct task {                  /* a ps task, as the client sees it */
    struct dtw_client *client; /* borrowed */
    uint32_t index;
    char endpoint[DT_MAX_ENDPOINT + 1];
    struct connection *shards[DT_MAX_SHARDS]; /* owned; [0] is there from the start */
    uint32_t n_shards;                        /* 0 until the first HELLO was answered */
    uint64_t incarnation;
    uint64_t life;
    uint64_t declared_incarnation; /* the psd life that told the homes */
    bool must_join;
    uint64_t first_step;
    int64_t heard_ms;       /* last time that anything came from it */
    int64_t progress_ms;    /* last time that a HELLO brought something */
    int64_t hello_first_ms; /* last time that shard 0 was asked anew because of HELLO_FIRST */
    int64_t away_ms;        /* since when a connection is not ready; -1: all are */
    int64_t told_ms;        /* when the next "waiting for" line is due */
    int64_t taken_ms;       /* since when the rank is taken; -1: it is not */
    char taken[DT_MAX_TEXT + 1];
    bool gave_up;             /* no answer for retry_for_ms; HELLO goes on */
    struct dtw_error trouble; /* why it gave up */
};

struct dtw_client {
    pid_t pid;      /* of the process that opened it */
    unsigned forks; /* of its ancestors since the library was loaded */
    unsigned char uuid[DT_UUID_BYTES];
    char host[65];
    /* settings */
    char job[DT_MAX_NAME + 1];
    uint32_t rank;
    bool fresh;
    struct dt_job_params params;
    struct dt_buffer params_body; /* owned: HELLO's body frame */
    int64_t retry_for_ms;
    int64_t waiting_ms;
    dtw_log_fn *log;
    void *log_arg;
    int stop_fd; /* borrowed; -1: none */

    struct dt_context *context; /* owned */
    struct driver driver;
    struct task *tasks; /* owned */
    uint32_t n_tasks;
    struct declared declared;
    struct dtw_handle *handles; /* list: all that the application has not collected */
    uint64_t next_request;
    uint64_t n_batches; /* pushed so far: the clock of an asynchronous job */
    uint64_t clock;     /* ssp: steps finished, from where JOIN let it begin */
    uint64_t push_counter;
    uint64_t last_pushed;   /* step of the last push; DT_NO_VERSION: none */
    uint64_t message_bytes; /* payload that one data message may carry */

    struct dtw_error fatal; /* code != DTW_OK: the job is over for this client */
    bool ready;             /* every connection has a session */
    bool lost;              /* a life has ended: dtw_join */
    bool left;
    bool waits_step; /* a dtw_wait_step is under way: psd knows one a worker */
    bool unacked;    /* a push ended without all its replies */
    int64_t waiting_told_ms;

    atomic_bool interrupted;
    bool stop_seen; /* stop_fd was readable */
    _Atomic uint64_t worker_step;
    _Atomic uint64_t global_step;
    _Atomic uint64_t stop_step; /* UINT64_MAX: none */
};

/* Fill err (may be NULL) and return the code. */
enum dtw_status client_error(struct dtw_error *err, enum dtw_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void client_log(struct dtw_client *client, enum dtw_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The job is over for this client: every outstanding request ends with that. The first one counts. */
void client_fatal(struct dtw_client *client, enum dtw_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool client_is_task_ready(const struct task *task); /* all its connections have a session */
void client_update_ready(struct dtw_client *client);

/* Begin a call: refuses NULL, forked, closed and failed clients; else takes the lock, DTW_OK. */
enum dtw_status client_enter(struct dtw_client *client, struct dtw_error *err);
enum dtw_status client_enter_forked_only(struct dtw_client *client, struct dtw_error *err);
void client_exit(struct dtw_client *client);
/* May a push or pull start? DTW_LOST, DTW_UNAVAILABLE with the reason. Lock held. */
enum dtw_status client_check_usable(const struct dtw_client *client, struct dtw_error *err);
/* Does every ps task answer? Else the status of the one that was given up. Lock held. */
enum dtw_status client_check_answers(const struct dtw_client *client, struct dtw_error *err);
/* Wait until every connection has a session. Lock held. */
enum dtw_status client_wait_ready(struct dtw_client *client, struct dtw_error *err);

/* Locking none: psd serves all slices for this rank on one shard; beside it only shard 0 is needed. */
static inline bool
client_uses_shard(const struct dtw_client *client, uint32_t shard, uint32_t n_shards)
{
    return client->params.locking != DT_LOCK_NONE || shard == 0 || shard == client->rank % n_shards;
}

/* dt_status -> dtw_status: the one place (status.c). */
enum dtw_status client_status(enum dt_status status);

static inline bool
client_is_sync(const struct dtw_client *client)
{
    return client->params.consistency == DT_SYNC;
}

static inline bool
client_is_ssp(const struct dtw_client *client)
{
    return client->params.consistency == DT_SSP;
}

#endif
