/*
 * order.h - addressable data: the rows of (seed, epoch, step, rank) are a pure function.
 *
 * One permutation of all rows an epoch (a Philox-keyed Feistel network over [0, n) with cycle walking:
 * no table, any position in O(1)). Global batch s of an epoch = positions [s*M*B, (s+1)*M*B) of the
 * permutation, cut at n; rank r takes the r-th part: positions [s*M*B + r*B, + B) cut at the end of
 * the global batch... for a short last batch of `left` rows the parts are as equal as can be, the
 * first left % M ranks get one more. A rank >= M reads B rows a step from a permutation of its own (key seed, rank).
 * Steps an epoch = ceil(n / (M*B)). Nothing is kept but the step.
 */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H

#include <stdint.h>

struct order {
    uint64_t seed;
    uint64_t n_rows;
    uint32_t workers; /* M */
    uint32_t batch;   /* B */
};

uint64_t order_steps_per_epoch(const struct order *o);
/* The rows of global step `step` for `rank` into rows[0..B); returns how many (0: abstain). */
uint32_t order_rows(const struct order *o, uint64_t step, uint32_t rank, uint64_t *rows);
/* How many rows the step holds for `rank` (without listing them). */
uint32_t order_count(const struct order *o, uint64_t step, uint32_t rank);
/* Position `i` of the permutation of epoch `epoch`. */
uint64_t order_permute(const struct order *o, uint64_t epoch, uint64_t i);

#endif
