/*
 * order.h - addressable data: the rows of (seed, epoch, step, rank) are a pure function.
 *
 * One permutation of all n rows an epoch (a Philox-keyed Feistel network over [0, n) with cycle
 * walking: no table, any position in O(1)). Steps an epoch = ceil(n / (M*B)). Global batch s of an epoch
 * holds m = min(M*B, n - s*M*B) rows: positions [s*M*B, s*M*B + m) of the permutation. They are split
 * over the ranks 0..M-1 in order of rank: B each when the batch is full; of a short last batch parts as
 * equal as can be, the first m % M ranks get one more. So every row is read once an epoch.
 * A rank >= M reads B rows a step from permutations of its own (key seed, rank), one after the other:
 * it adds samples and takes none. Nothing is kept but the step. Pure functions, any thread.
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
/* A round of N gradients from M workers: with N > M some compute several batches at the same values. The global batch
 * then has N parts, and rank k the floor(N / M) + (k < N mod M) parts that follow those of the ranks before it. Ranks
 * >= M have one, of their own. N of 0, or up to M: one part a worker. */
struct order_share {
    uint32_t first, n; /* parts: what `rank` is for an order of N workers */
};
uint32_t order_parts(uint32_t aggregate, uint32_t workers);
struct order_share order_share(uint32_t aggregate, uint32_t workers, uint32_t rank);

/* The rows of global step `step` for `rank` into rows[0..B); returns how many (0: abstain). */
uint32_t order_rows(const struct order *o, uint64_t step, uint32_t rank, uint64_t *rows);
/* How many rows the step holds for `rank` (without listing them). Never more than B. */
uint32_t order_count(const struct order *o, uint64_t step, uint32_t rank);
/* Position `i` of the permutation of epoch `epoch` (that of the ranks < M). */
uint64_t order_permute(const struct order *o, uint64_t epoch, uint64_t i);

#endif
