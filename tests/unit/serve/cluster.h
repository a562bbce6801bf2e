/*
 * cluster.h - several shards in one thread, without sockets: requests in, replies out, mails between
 * shards delivered by hand, time by hand.
 */
#ifndef TEST_CLUSTER_H
#define TEST_CLUSTER_H

#include "proto/wire/data.h"
#include "proto/wire/declare.h"
#include "proto/wire/hello.h"
#include "proto/wire/member.h"
#include "proto/wire/params.h"
#include "proto/wire/stats.h"
#include "psd/serve/serve.h"

#define MAX_ANSWERS 4096

struct answer { /* a reply as the client sees it */
    uint32_t shard;
    struct dt_route route;
    struct dt_head head; /* reads from `header` */
    struct dt_buffer header;
    struct dt_buffer body;
    uint32_t n_frames;
    float *frames[DT_MAX_ITEMS]; /* owned copies */
    size_t frame_bytes[DT_MAX_ITEMS];
};

struct cluster {
    struct serve_shared *shared;
    struct serve_config config;
    uint32_t n_shards;
    struct shard *shards[8];
    struct mail *mails[8][8], **mails_end[8][8]; /* from, to */
    uint32_t n_mails;
    int64_t now;
    uint32_t n_answers;
    struct answer *answers[MAX_ANSWERS];
    uint64_t next_request;
    bool hold_replies; /* replies stay in the transport: `held` */
    uint32_t n_held;
    struct reply *held[256];
};

struct worker_at { /* a fake worker: one route a shard, sessions, what it holds */
    uint32_t rank;
    unsigned char uuid[DT_UUID_BYTES];
    uint32_t route_serial;
    struct dt_route routes[8];
    uint64_t sessions[8];
    uint64_t life;
    uint64_t incarnation;
    uint64_t counter;
    bool must_join;
};

struct serve_config cluster_config(uint32_t n_shards); /* what cluster_create takes */
struct cluster *cluster_create(uint32_t n_shards);
struct cluster *cluster_create_with(const struct serve_config *config);
void cluster_destroy(struct cluster *c);

/* Send header and frames to a shard; takes the header buffer. */
void cluster_send(struct cluster *c, uint32_t shard, enum peer_class pc,
                  const struct dt_route *route, struct dt_buffer *header,
                  const struct dt_span *frames, uint32_t n_frames);
/* Deliver one mail (the `pick`-th non-empty queue); false when there is none. */
bool cluster_deliver(struct cluster *c, uint32_t pick);
void cluster_settle(struct cluster *c);           /* deliver all mails */
void cluster_tick(struct cluster *c, int64_t ms); /* advance in 50 ms turns, all shards */
/* Take the oldest answer for a request id (NULL: none). Owned by the caller. */
struct answer *cluster_take(struct cluster *c, uint64_t request);
struct answer *cluster_status(struct cluster *c);      /* ADMIN_STATUS's, which must be OK */
void cluster_keep(struct cluster *c, struct reply *r); /* deliver a held reply */
void answer_free(struct answer *a);
uint32_t cluster_count(const struct cluster *c, uint64_t request);

void worker_at_init(struct worker_at *w, uint32_t rank);
void worker_new_routes(struct worker_at *w); /* a new connection everywhere */
/* HELLO to one shard; returns the status (DT_E_TIMEOUT: no answer). */
enum dt_status worker_hello(struct cluster *c, struct worker_at *w, uint32_t shard, const char *job,
                            const struct dt_job_params *params, bool fresh,
                            struct dt_hello_reply *reply);
/* HELLO to all shards, all must be OK. */
void worker_hello_all(struct cluster *c, struct worker_at *w, const char *job,
                      const struct dt_job_params *params);
enum dt_status worker_declare(struct cluster *c, struct worker_at *w,
                              const struct dt_declaration *decls, uint32_t n);
/* INIT_DONE(sent); returns the state, or 0 (parked or refused: *status). */
uint64_t worker_init_done(struct cluster *c, struct worker_at *w,
                          const struct dt_declaration *decls, uint32_t n, bool sent,
                          enum dt_status *status);
enum dt_status worker_step_op(struct cluster *c, struct worker_at *w, enum dt_op op, uint64_t step,
                              uint64_t *out);
/* Sends a data request and returns its request id. */
uint64_t worker_data(struct cluster *c, struct worker_at *w, uint32_t shard, enum dt_op op,
                     const struct dt_data *m, const float *const *frames,
                     const uint32_t *n_elements);
/* Declare one-slice variables of `n` elements, initialise with `value`: the whole start of a job. */
/* lr < 0: the rule add-damped, which has none. */
void cluster_start_job(struct cluster *c, struct worker_at *w, const char *job,
                       const struct dt_job_params *params, uint32_t n_variables, uint32_t n,
                       float lr, float value, uint8_t *homes);

#endif
