/*
 * permutation.c - Feistel network with Philox round keys and cycle walking.
 *
 * The domain is 2^bits with n <= 2^bits < 2n (4 at least), so a walk takes less than two applications
 * on average. It ends, because the cycle that starts inside [0, n) comes back to it.
 * Invariant: the images never change between versions (golden values in the tests): a resumed job reads
 * the same rows. Threads: pure, any.
 */
#include "worker/train/permutation.h"

void
permutation_init(struct permutation *p, uint64_t n, uint64_t seed, enum philox_domain domain,
                 uint32_t stream, uint64_t epoch)
{
    unsigned bits = 2;

    while (bits < 63 && (UINT64_C(1) << bits) < n)
        bits++;
    p->n = n;
    p->left_bits = bits / 2;
    p->right_bits = bits - p->left_bits;
    for (unsigned r = 0; r < PERMUTATION_ROUNDS; r += 2) {
        struct philox_block b = philox(seed, domain, r / 2, stream, epoch);
        p->keys[r] = (uint64_t)b.v[0] << 32 | b.v[1];
        p->keys[r + 1] = (uint64_t)b.v[2] << 32 | b.v[3];
    }
}

/* Finaliser of splitmix64 (Steele et al. 2014): every input bit reaches every output bit. */
static uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t
apply(const struct permutation *p, uint64_t x)
{
    unsigned left_bits = p->left_bits;
    unsigned right_bits = p->right_bits;
    uint64_t left = x >> right_bits;
    uint64_t right = x & ((UINT64_C(1) << right_bits) - 1);

    for (unsigned r = 0; r < PERMUTATION_ROUNDS; r++) {
        uint64_t f = mix(right + p->keys[r]) & ((UINT64_C(1) << left_bits) - 1);
        uint64_t old_left = left;
        unsigned old_bits = left_bits;
        left = right;
        right = old_left ^ f;
        left_bits = right_bits;
        right_bits = old_bits;
    }
    return left << right_bits | right;
}

uint64_t
permutation_at(const struct permutation *p, uint64_t i)
{
    if (p->n == 0)
        return 0;
    i %= p->n;
    do
        i = apply(p, i);
    while (i >= p->n);
    return i;
}
