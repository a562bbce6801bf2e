/*
 * slice.h - a contiguous run of a variable: its values, version, open round and push table.
 *
 * Invariants: `values` is never written while it is shared; version = number of rounds closed; a
 * rank's gradient is in the open round exactly when rows[rank].in_step == version + 1.
 * Locking none: every shard has a struct slice of its own with the push rows of the ranks that it serves;
 * values, slots and version are those of `shared`, written in place by all shards at once (racy.h).
 * Thread rule: the slice's shard alone.
 */
#ifndef PSD_STORE_SLICE_H
#define PSD_STORE_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire/data.h"
#include "psd/optim/optimizer.h"
#include "psd/store/accumulator.h"
#include "psd/store/declared.h"
#include "psd/store/membership.h"
#include "psd/store/nonfinite.h"

struct variable;
struct job;

struct push_row { /* the last push of one rank, tagged with the worker's life */
    uint64_t life;
    uint64_t counter;
    uint64_t version; /* the slice's version told with the fate */
    uint64_t
        in_step;    /* step + 1 of the newest round that holds a gradient of this rank; any life */
    uint64_t clock; /* ssp (clock.h): steps finished in the rank's present life */
    uint8_t fate;
};

struct slice {
    struct variable *variable; /* borrowed */
    uint32_t index;
    uint32_t n;                                  /* elements */
    struct shared_slice *shared;                 /* locking none, borrowed; else NULL */
    bool own_has_values;                         /* unless shared: slice_has_values() */
    uint64_t own_version;                        /* unless shared: slice_version() */
    struct dt_block *values;                     /* a reference; shared with replies */
    struct dt_block *slots[OPTIMIZER_MAX_SLOTS]; /* references */
    struct accumulator round;
    struct nonfinite nonfinite;
    uint32_t n_rows;
    struct push_row *rows; /* owned; by rank */
    void *waiters;         /* for the layer above: the requests parked on this slice */
};

/* NULL when memory is short. */
struct slice *slice_create(struct variable *variable, uint32_t index, uint32_t n,
                           struct dt_pool *pool);
struct slice *slice_create_shared(struct variable *variable, uint32_t index, uint32_t n,
                                  struct shared_slice *shared);
void slice_destroy(struct slice *slice); /* NULL-safe; waiters must be gone */

/* Updates applied so far; in synchronous jobs the step. Locking none: approximate, but a shard never sees
 * it go back. */
static inline uint64_t
slice_version(const struct slice *s)
{
    return s->shared ? atomic_load_explicit(&s->shared->version, memory_order_relaxed)
                     : s->own_version;
}

/* The rank's row; NULL when memory is short. */
struct push_row *slice_require_row(struct slice *slice, uint32_t rank);

/* Initial values. False when memory is short. *first: there were none before. */
bool slice_set(struct slice *slice, struct dt_pool *pool, const void *values, bool *first);
/* The initial values do not count; returns whether there were any. */
bool slice_forget(struct slice *slice);

struct push { /* one worker's gradient for one slice */
    uint32_t rank;
    uint64_t life;
    uint64_t counter;
    uint64_t version; /* the gradient was computed at */
    uint64_t weight;
    uint32_t count;
    const void *gradient; /* borrowed, unaligned; NULL: abstain */
    float largest;        /* magnitude in it */
};

/* Take a gradient into the open round; in an asynchronous job apply it at once (fate APPLIED). Returns its fate; *version is the slice's version now.
 * *failed is set when memory is short (fate NONE, nothing changed). Does not close the round. */
enum dt_fate slice_push(struct slice *slice, struct job *job, const struct push *push,
                        int64_t now_ms, uint64_t *version, bool *failed);

/* Locking variable: memory for an update of all of them, so that none of slice_push's ends half way. False when it
 * is short. */
bool slice_reserve(struct slice *const *slices, uint32_t n, struct dt_pool *pool);

/* Was this very push taken or refused before? Its fate is then told again. */
bool slice_has_push(const struct slice *slice, const struct push *push);

/* Close the open round if the rule of DESIGN section 4 says so: update the values, version + 1.
 * Returns true when the version moved; call again until false. */
bool slice_close_round(struct slice *slice, struct job *job);

/* The members that the open round still waits for: at most `max` of them into ranks; returns how many in all. */
uint32_t slice_missing(const struct slice *slice, const struct job *job, uint32_t *ranks,
                       uint32_t max);

#endif
