/*
 * accumulator.h - the gradients of one slice's open round: a weighted sum and what goes with it.
 *
 * The sum's block is taken at the first gradient of a round and given back when the round closes, so
 * an idle variable costs no accumulator. sum = sum(f_k * g_k) with f = weight (mean), count (count and
 * sum); the divisor is sum(weight), sum(count) or 1 (ALGORITHMS section 2).
 *
 * Deterministic jobs sum in rank order: a gradient that comes before one of a lower rank is held as a copy
 * (accumulator_hold) until those below it are in (accumulator_release).
 */
#ifndef PSD_STORE_ACCUMULATOR_H
#define PSD_STORE_ACCUMULATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/block.h"
#include "proto/wire/params.h"

struct held;

struct accumulator {
    struct held *held;    /* owned; list in order of rank */
    struct dt_block *sum; /* owned; NULL until a gradient came */
    uint64_t weight;      /* rows */
    uint64_t count;       /* batches */
    uint32_t n_pushed;    /* contributions, abstentions too */
    int64_t opened_ms;    /* when the first contribution came (psd's own running time) */
};

void accumulator_reset(struct accumulator *a); /* gives the block back */
/* Add a gradient of n elements (unaligned). weight = count = 0 or g = NULL adds nothing to the sum.
 * False when memory is short: nothing changed. */
bool accumulator_add(struct accumulator *a, struct dt_pool *pool, enum dt_reduce reduce,
                     const void *g, uint32_t n, uint64_t weight, uint32_t count, int64_t now_ms);
/* The same with a copy that waits for accumulator_release. */
bool accumulator_hold(struct accumulator *a, struct dt_pool *pool, enum dt_reduce reduce,
                      uint32_t rank, const void *g, uint32_t n, uint64_t weight, uint32_t count,
                      int64_t now_ms);
/* Add what is held of the ranks below `below`, in their order. */
void accumulator_release(struct accumulator *a, uint32_t n, uint32_t below);
/* Turn the sum into the reduced gradient in place. False: the divisor is 0 or nothing came. */
bool accumulator_reduce(struct accumulator *a, enum dt_reduce reduce, uint32_t n);

#endif
