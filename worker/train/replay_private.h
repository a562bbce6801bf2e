/*
 * replay_private.h - private to replay*.c: ranks, their records, and whose turn it is.
 */
#ifndef TRAIN_REPLAY_PRIVATE_H
#define TRAIN_REPLAY_PRIVATE_H

#include <pthread.h>

#include "worker/train/replay.h"
#include "worker/train/replay_store.h"

#define REPLAY_NEVER UINT64_MAX /* a version that is not pulled any more */

struct replay_rank {
    struct replay *replay; /* borrowed */
    uint32_t rank;
    int threads;
    struct record_reader *now; /* owned */
    struct record record;      /* the next exchange, or END */
    uint64_t n_pushes;         /* that are left */
    struct record end;         /* its last frame */
    uint64_t counter;          /* of pushes */
    uint64_t *at;              /* owned, by slice: the version that the rank holds */
    bool *pushing, *pulling;   /* owned, by slice: what is left of the exchange under way */
    /* What it will pull next: no slice may go past that before. */
    struct record_reader *ahead; /* owned */
    bool *pulled;                /* owned, by slice: done of the pull at hand */
    uint64_t n_pulled;           /* of these */
    uint64_t *need, *need_next;  /* owned, by slice: of the pull at hand and of the one behind it */
};

struct replay {
    pthread_mutex_t turn; /* held by the thread whose turn it is; guards all */
    pthread_cond_t moved;
    uint64_t generation; /* how often something moved */
    unsigned n_running;
    unsigned n_waiting; /* have seen that they cannot go on in this generation */
    bool failed;
    char text[DT_ERROR_TEXT];
    const struct replay_rank *declares; /* the first one: all declare the same */
    bool is_initialised;
    struct replay_store store;
    struct replay_counts counts;
    unsigned n_ranks;
    struct replay_rank **ranks; /* owned */
};

/* The first failure counts. */
void replay_fail(struct replay *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* replay_rank.c */
enum dt_status replay_rank_create(struct replay *replay, const char *path, uint32_t rank,
                                  char **header, struct replay_rank **out, struct dt_error *err);
void replay_rank_destroy(struct replay_rank *k); /* NULL-safe */
/* The next record of the rank. False: replay_fail. */
bool replay_rank_next(struct replay_rank *k);
/* The version that it will pull next of slice i; REPLAY_NEVER: none. */
uint64_t replay_rank_needs(const struct replay_rank *k, uint64_t i);
/* It has pulled slice i. False: replay_fail. */
bool replay_rank_took(struct replay_rank *k, uint64_t i);

/* replay_turn.c: the rank's exchange, as its record says. The turn is held, and given to others while it cannot go on.
 * False: replay_fail. */
struct replay_exchange {
    const float *const *gradients; /* NULL: abstain, or a pull */
    float *const *values;          /* NULL: a push */
    uint64_t weight;
    unsigned count;
};
bool replay_exchange(struct replay_rank *k, const struct replay_exchange *x);

#endif
