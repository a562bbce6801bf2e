/*
 * declared.h - the job's list of declarations with the place of every slice: made once by shard 0,
 * immutable afterwards, shared by all shards (freed with struct job_shared).
 *
 * Locking slice: each slice has a home shard. Locking none: each slice has one struct shared_slice
 * with its blocks, which all shards use at the same time; they are never replaced while the job lives.
 */
#ifndef PSD_STORE_DECLARED_H
#define PSD_STORE_DECLARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/block.h"
#include "proto/wire/declare.h"
#include "psd/optim/optimizer.h"

struct shared_slice { /* locking none: what all shards see of a slice; approximate counters */
    struct dt_block *values;                     /* owned */
    struct dt_block *slots[OPTIMIZER_MAX_SLOTS]; /* owned */
    _Atomic uint64_t version;
    atomic_bool has_values;
};

struct declared_variable {
    struct dt_declaration decl;
    uint64_t elements;
    uint32_t n_slices;           /* 0: another ps task holds it */
    uint8_t *homes;              /* owned; shard of each slice; NULL with locking none */
    struct shared_slice *shared; /* owned; n_slices of them; NULL with locking slice */
};

struct declared {
    uint32_t n;
    uint32_t n_slices;                    /* of this task */
    uint64_t fingerprint;                 /* of all declarations */
    struct declared_variable variables[]; /* variable id = index */
};

struct declared_place { /* where declarations come to live */
    uint32_t task;      /* this ps task */
    uint32_t n_shards;
    uint64_t together_bytes; /* 0: slices are spread as evenly as they can be */
    uint32_t ranks;          /* push rows a slice */
    bool racy;               /* locking none */
    bool whole;              /* locking variable: one home for all slices of a variable */
    uint32_t held; /* gradients a slice that may wait for rank order; deterministic jobs */
};

/* What `n` declarations are charged to memory_quota. To be checked before declared_create: homes alone
 * may be more than there is memory. */
uint64_t declared_charge(const struct dt_declaration *decls, uint32_t n,
                         const struct declared_place *where);
/* Copy `n` declarations and choose homes for those of the task, or make the shared slices out of `pool`. A slice stays
 * with the one before it while their shard has less than together_bytes more than the one with the least: small
 * variables then share a message. Else it goes to the one with the least, the lowest index on a tie; but a shard that has
 * nothing yet is not begun for less than together_bytes. NULL when memory is short. */
struct declared *declared_create(const struct dt_declaration *decls, uint32_t n,
                                 const struct declared_place *where, struct dt_pool *pool);
void declared_destroy(struct declared *d);

/* The rule of a declaration; DT_R_BAD_VALUE with a sentence that names the variable. */
enum dt_status declared_optimizer(const struct dt_declaration *d, struct optimizer *out,
                                  struct dt_error *err);
/* Blocks for the slots of a slice of n elements, filled with their start values. False when memory is
 * short; what was made stays in `slots`. */
bool declared_make_slots(const struct optimizer *o, uint32_t n, struct dt_pool *pool,
                         struct dt_block **slots);

#endif
