/*
 * permutation.h - a keyed bijection of [0, n) without a table: any position in O(1).
 *
 * A Feistel network over the next power of two with cycle walking. n from 1 to 2^40.
 */
#ifndef TRAIN_PERMUTATION_H
#define TRAIN_PERMUTATION_H

#include <stdint.h>

#include "worker/train/philox.h"

#define PERMUTATION_ROUNDS 8 /* even: the halves change places every round */

struct permutation {
    uint64_t n;
    unsigned left_bits;
    unsigned right_bits;
    uint64_t keys[PERMUTATION_ROUNDS];
};

/* The permutation number `epoch` of (seed, domain, stream). */
void permutation_init(struct permutation *p, uint64_t n, uint64_t seed, enum philox_domain domain,
                      uint32_t stream, uint64_t epoch);
/* Image of i; i < n (a larger i is taken modulo n; 0 when n is 0). */
uint64_t permutation_at(const struct permutation *p, uint64_t i);

#endif
