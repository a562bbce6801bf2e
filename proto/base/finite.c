/*
 * finite.c - as fast as memory is read: the whole gradient is looked at before a push begins. Pure; any thread.
 */
#include "proto/base/finite.h"

#include <stdint.h>
#include <string.h>

#include "proto/base/clones.h"

/* NaN and Inf are the numbers whose exponent bits are all set. */
DT_CLONED bool
dt_is_finite(const void *g, size_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t bad = 0, bits;
    size_t i;

    for (i = 0; i < n; i++) {
        memcpy(&bits, (const char *)g + i * sizeof(bits), sizeof(bits));
        bad |= (bits & exponent) == exponent;
    }
    return !bad;
}
