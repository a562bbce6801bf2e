/*
 * samples.c - reproducible numbers and unaligned copies for the tests of the kernels.
 */
#include "samples.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const size_t sample_sizes[N_SIZES] = {0, 1, 7, 8, 9, 15, 33, 1000, 262143, 262144, 262145};

float *
samples(unsigned seed, size_t n)
{
    float *x = malloc((n + 1) * sizeof(*x));
    uint32_t state = seed * 2654435761u + 1;
    size_t i;

    if (!x)
        abort();
    for (i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ldexpf((float)(state >> 8) / 8388608.0f - 1, (int)(state >> 4 & 15) - 8);
    }
    return x;
}

const void *
unaligned_copy(const float *x, size_t n, unsigned offset, void **base)
{
    char *p =
        malloc(n * sizeof(*x) + offset + 1); /* ends where x ends: ASan sees each step beyond */

    if (!p)
        abort();
    memcpy(p + offset, x, n * sizeof(*x));
    *base = p;
    return p + offset;
}
