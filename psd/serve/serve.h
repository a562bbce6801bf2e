/*
 * serve.h - what the daemon (and the tests, the fuzzer, the benchmarks) call: one shard's dispatch.
 *
 * No socket, no clock of its own, no file. A request goes in, replies and mails to other shards come
 * out of the outbox; the caller delivers them. All times are the caller's monotonic milliseconds.
 *
 * Thread rule: a shard is used by one thread alone. struct serve_shared is shared by all shards of
 * the process and is immutable after serve_shared_create but for atomics; serve_set_limits may be called
 * by any thread.
 */
#ifndef PSD_SERVE_SERVE_H
#define PSD_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/buffer.h"
#include "proto/base/error.h"
#include "proto/base/frame.h"
#include "proto/base/meter.h"
#include "proto/wire/limits.h"
#include "psd/serve/stages.h"

struct shard;
struct mail; /* a message between shards; see psd/serve/mail.h */
struct serve_shared;

enum peer_class { PEER_LOCAL = 0, PEER_NETWORK = 1, PEER_ADMIN = 2, N_PEER_CLASSES = 3 };

struct serve_listener { /* one --listen endpoint with the addresses of all shards behind it */
    char endpoint[DT_MAX_ENDPOINT + 1]; /* shard 0's, as bound */
    char peers[DT_MAX_SHARDS][24];      /* hello.h: port or suffix of each shard; [0] is shard 0 */
};

/* Appends one msgpack object to the body of ADMIN_STATUS; shard 0's thread. */
typedef void status_write_fn(void *arg, struct dt_buffer *body);

struct serve_config {
    uint32_t n_shards;
    uint32_t window; /* requests in flight a connection */
    uint64_t window_bytes;
    uint64_t max_session_bytes;
    uint64_t memory_quota;                  /* of one job */
    uint64_t together_bytes;                /* of declared_place */
    bool once;                              /* psd --once: SUSPENDED is watched */
    int64_t once_suspend_ms;                /* where a job has no start-timeout: 60 000 */
    const struct serve_listener *listeners; /* borrowed; must outlive the shards */
    uint32_t n_listeners;
    stage_clock_fn *stage_clock; /* for the shards' stages; NULL: their time is not counted */
    uint32_t stage_sample;       /* of stages_init */
    status_write_fn *write_cpu;  /* ADMIN_STATUS's "cpu"; NULL: nil */
    void *cpu;                   /* borrowed: its argument */
};

struct serve_shared *
serve_shared_create(const struct serve_config *config); /* NULL when memory is short */
/* The limits of serve_config that may change while shards run. A life of a worker keeps the window that
 * it was told first; a memory quota counts for jobs that declare from now on. */
struct serve_limits {
    uint32_t window; /* not above that of serve_config: sockets are made for it */
    uint64_t window_bytes;
    uint64_t max_session_bytes;
    uint64_t memory_quota;
};
void serve_set_limits(struct serve_shared *shared, const struct serve_limits *limits);
void serve_shared_destroy(struct serve_shared *shared);
uint64_t serve_incarnation(const struct serve_shared *shared);

/* A received message. Everything is borrowed for the call. */
struct request {
    enum peer_class peer_class;
    struct dt_route route;
    struct dt_span header;
    uint32_t n_frames;
    const struct dt_span *frames;
    bool overflow; /* more frames than allowed: refuse */
};

struct reply { /* owned by the outbox, then by the daemon until reply_destroy */
    struct reply *next;
    enum peer_class peer_class;
    struct dt_route route;
    struct dt_buffer header;
    struct dt_buffer body; /* one body frame when len > 0 (control messages) */
    uint32_t n_payload;
    struct dt_payload *payload; /* owned array; blocks referenced */
    struct dt_meter *meter;     /* shared; dt_meter_add has been called; NULL for small replies */
    size_t meter_bytes;
    bool keep; /* PARKED or woken: at DT_SENT_FULL give it back with shard_undelivered */
};
void reply_destroy(struct reply *r); /* NULL-safe */

struct outbox {
    struct reply *replies, **replies_end;
    struct mail *mails, **mails_end; /* mail->to is a shard index; mail->next links them */
};
void outbox_init(struct outbox *out);
void outbox_deinit(struct outbox *out);              /* destroys what was not taken */
struct reply *outbox_take_reply(struct outbox *out); /* the oldest, or NULL; owned by the caller */
struct mail *outbox_take_mail(struct outbox *out);   /* the oldest, or NULL; owned by the caller */
uint32_t mail_target(const struct mail *mail);
struct mail **mail_next(struct mail *mail); /* the link field, free for the caller's lists */
void mail_destroy(struct mail *mail);

/* wake_fd: an eventfd in the shard's poll set (borrowed); written when a session's replies were taken. */
struct shard *shard_create(struct serve_shared *shared, uint32_t index, int wake_fd);
void shard_destroy(struct shard *shard);
/* Where its time goes: the daemon says what a turn does. Valid while the shard is; its thread alone. */
struct stages *shard_stages(struct shard *shard);
/* Sessions that were opened so far. */
uint64_t shard_n_opened(const struct shard *shard);

void shard_dispatch(struct shard *shard, const struct request *request, int64_t now,
                    struct outbox *out);
void shard_mail(struct shard *shard, struct mail *mail, int64_t now,
                struct outbox *out); /* takes the mail */
/* To be called when wake_fd was written: replies that waited go out as far as there is room. */
void shard_flush(struct shard *shard, struct outbox *out);
/* Time: leases, timeouts, retries. */
void shard_tick(struct shard *shard, int64_t now, struct outbox *out);
#define SHARD_TICK_MS 50 /* call shard_tick at least so often (leases down to 100 ms are legal) */

/* The daemon could not send: `why` DT_SENT_FULL or DT_SENT_GONE. Takes the reply. FULL and keep: the
 * shard keeps it and offers it again by tick; FULL otherwise: the peer is over its window, its session
 * ends; GONE: the session ends (lease goes on). */
void shard_undelivered(struct shard *shard, struct reply *reply, enum dt_sent why, int64_t now,
                       struct outbox *out);

/* SIGTERM: parked requests are answered GOING_DOWN, GOODBYE goes to each session, later requests are
 * answered GOING_DOWN. */
void shard_stop(struct shard *shard, int64_t now, struct outbox *out);
uint32_t
shard_n_unacknowledged(const struct shard *shard); /* sessions that have not acknowledged GOODBYE */

/* Shard 0 only. */
bool shard_shutdown_wanted(const struct shard *shard); /* ADMIN_SHUTDOWN was answered */
enum once_state { ONCE_RUNNING, ONCE_COMPLETE, ONCE_SUSPENDED };
enum once_state
shard_once_state(const struct shard *shard,
                 int64_t now); /* of all jobs together; RUNNING while there is none */
/* "2 jobs, 5 workers, step 1200" for STATUS= and the log. */
void shard_summary(const struct shard *shard, char *out, size_t bytes);

#endif
