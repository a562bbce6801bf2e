/*
 * fake.h - a scripted psd for the library's tests: real ROUTERs, one thread, one worker.
 *
 * It does what the protocol says for one rank (each push closes the round at once) but for what the
 * script asks. Script fields are set under fake->lock (fake_lock/fake_unlock), counters are read so.
 */
#ifndef TESTS_UNIT_LIB_FAKE_H
#define TESTS_UNIT_LIB_FAKE_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/net/router.h"
#include "proto/wire/data.h"
#include "proto/wire/declare.h"
#include "proto/wire/hello.h"
#include "worker/lib/dtworker.h"

#define FAKE_SHARDS 4
#define FAKE_VARIABLES 8
#define FAKE_SLICES 16
#define FAKE_HELD 256

enum fake_illegal {
    FAKE_LEGAL,
    FAKE_FEW_ITEMS,   /* one item too few */
    FAKE_SHORT_FRAME, /* a frame of another size */
    FAKE_OLD_VERSION, /* values older than wanted */
    FAKE_BAD_FATE,
    FAKE_GARBAGE, /* the header is no msgpack */
    FAKE_NO_FRAMES,
};

struct fake_variable {
    uint64_t elements;
    uint32_t n_slices;
    uint32_t task;
    float lr;
    float *values; /* owned */
    uint64_t versions[FAKE_SLICES];
    uint64_t counters[FAKE_SLICES]; /* last push applied */
};

struct fake_shard {
    struct dt_router *router;
    uint64_t session; /* 0: none */
    struct dt_route route;
    uint32_t in_flight; /* held replies: requests that the client has outstanding */
    uint64_t bytes_in_flight;
};

struct fake_held { /* a request that is answered later */
    struct dt_route route;
    uint32_t shard;
    unsigned op;
    uint64_t request, session;
    struct dt_data data;
    struct dt_data_result results[DT_MAX_ITEMS];
    uint64_t bytes;
};

struct fake {
    pthread_mutex_t lock;
    pthread_t thread;
    atomic_bool stop;
    struct dt_context *context;
    struct fake_shard shards[FAKE_SHARDS];
    uint32_t n_shards;
    char endpoint[DT_MAX_ENDPOINT + 1];
    char peers[FAKE_SHARDS][24];
    uint64_t incarnation, life, next_session;
    struct fake_variable variables[FAKE_VARIABLES];
    uint32_t n_variables;
    uint32_t n_declared;
    bool initialised;
    uint64_t step;
    uint32_t task;
    struct fake_held *held; /* owned */
    uint32_t n_held;

    void (*command)(struct fake *f); /* to be done by the thread */

    /* the script */
    uint32_t window;
    uint64_t window_bytes;
    int64_t lease_ms;
    enum dt_status hello_status; /* of HELLO to shard 0 */
    const char *text;            /* of rejects */
    enum dt_status data_status;  /* of PUSH, PULL, PUSHPULL */
    enum dt_status leave_status;
    bool mute;           /* reads, and answers nothing */
    unsigned swallow_op; /* does the next ones of this op, but loses the reply */
    unsigned swallow;    /* how many */
    bool park;           /* pulls are told PARKED and wait for fake_release */
    bool slow;           /* replies wait for fake_release, and nothing is told */
    bool park_init;      /* INIT_DONE waits for fake_grant */
    bool must_join;
    uint64_t join_step;
    enum fake_illegal illegal;

    /* what it saw */
    uint32_t seen[64];
    uint32_t applied; /* slices */
    uint32_t resent;  /* pushes that were applied before */
    uint32_t most_in_flight;
    uint64_t most_bytes;
    uint64_t left_at;
    uint32_t
        pushed[FAKE_HELD]; /* variables of the slices that were pushed first, in order of arrival */
    uint32_t n_pushed;
    uint64_t last_join;
};

/* endpoint NULL: a free port of the loopback. */
struct fake *fake_start(uint32_t n_shards, const char *endpoint);
void fake_stop(struct fake *f); /* NULL-safe; closes everything at once, as a kill would */
void fake_lock(struct fake *f);
void fake_unlock(struct fake *f);
uint32_t fake_seen(struct fake *f, unsigned op);
void fake_wait_seen(struct fake *f, unsigned op, uint32_t n); /* at most 10 s */
void fake_release(struct fake *f);                            /* answer what waits */
void fake_fence(struct fake *f);                              /* forget the sessions */
void fake_new_life(struct fake *f);
void fake_goodbye(struct fake *f);
void fake_grant(struct fake *f);

void fake_no_leaks(void); /* .fini of every suite */

/* The client's side. */
extern char fake_log_text[8192];
void fake_log(void *arg, enum dtw_log_level level, const char *line);
struct dtw_client *fake_open(struct fake **fakes, unsigned n, int64_t retry_for_ms);
void fake_ones(void *arg, unsigned index, float *values, uint64_t n); /* dtw_init_fn */
/* Opened, `n` variables of `elements` declared and initialised to 1, lr 0.5. */
struct dtw_client *fake_ready(struct fake *f, unsigned n, uint64_t elements);

#endif
