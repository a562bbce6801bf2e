/*
 * swarm.h - many workers of one asynchronous job in one process, by the raw protocol: a DEALER to each shard
 * for each worker, all driven by the calling thread.
 *
 * The job has one variable a shard (sgd) that workers use, and behind each one that fills the shard, so that psd
 * gives the next to another: each worker talks to all shards. Whatever is not as it must be ends the benchmark.
 */
#ifndef TEST_BENCH_SWARM_H
#define TEST_BENCH_SWARM_H

#include "proto/net/dealer.h"
#include "proto/wire/data.h"
#include "proto/wire/member.h"

struct swarm_lane { /* a worker's connection to one shard */
    struct dt_dealer *dealer;
    uint64_t session;
    uint32_t n_unanswered; /* requests without a final answer; PARKED is none */
};

struct swarm_worker {
    unsigned char uuid[DT_UUID_BYTES];
    uint32_t rank;
    uint64_t life, incarnation;
    enum dt_init_state expected; /* by the next INIT_DONE's reply */
    struct swarm_lane *lanes;    /* owned; one a shard */
};

struct swarm {
    struct dt_context *context; /* owned */
    const char *endpoint;       /* borrowed */
    uint32_t n_shards, n_workers;
    struct swarm_worker *workers; /* owned */
    uint32_t elements;            /* of each variable that is used */
    float rate;
    uint64_t last_request;
    struct dt_buffer header; /* of the next request */
};

/* The one that workers use. */
static inline uint32_t
swarm_variable(uint32_t shard)
{
    return 2 * shard;
}

/* All workers say HELLO to all shards of the psd at `endpoint` and declare; the initial values are zeros. */
void swarm_open(struct swarm *s, const char *endpoint, uint32_t n_workers, uint32_t elements,
                float rate);
/* All leave. */
void swarm_close(struct swarm *s);

/* Sends what was encoded into s->header, with one more frame where `frame` is not NULL (copied). */
void swarm_send(struct swarm *s, struct swarm_lane *lane, const void *frame, size_t bytes);
/* The next final answer, if there is one now; the caller deinits the message. */
bool swarm_receive(struct swarm_lane *lane, struct dt_message *m, struct dt_head *head);
/* The next final answer. */
void swarm_await(struct swarm_lane *lane, struct dt_message *m, struct dt_head *head);

#endif
