/*
 * philox.c - the one place that names Random123.
 *
 * Invariant: the mapping from arguments to counter words never changes (a test holds golden values).
 * Threads: pure, any.
 */
#include "worker/train/philox.h"

#include <Random123/philox.h>

struct philox_block
philox(uint64_t seed, enum philox_domain domain, uint32_t index, uint32_t stream, uint64_t position)
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t counter = {{(uint32_t)position, (uint32_t)(position >> 32), stream,
                                 (uint32_t)domain << 24 | (index & 0xffffffu)}};
    philox4x32_ctr_t r = philox4x32(counter, key);

    return (struct philox_block){{r.v[0], r.v[1], r.v[2], r.v[3]}};
}
