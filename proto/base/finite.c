/*
 * finite.c - as fast as memory is read: the whole gradient is looked at before a push begins. Pure; any thread.
 */
#include "proto/base/finite.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "proto/base/clones.h"

/* Without their signs, numbers are in the order of their bits: finite ones, Inf, NaN. */
DT_CLONED float
dt_largest(const void *g, size_t n)
{
    int32_t most = 0, bits;
    float largest;
    size_t i;

    for (i = 0; i < n; i++) {
        memcpy(&bits, (const char *)g + i * sizeof(bits), sizeof(bits));
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    memcpy(&largest, &most, sizeof(largest));
    return largest;
}

bool
dt_is_finite(const void *g, size_t n)
{
    return isfinite(dt_largest(g, n));
}
