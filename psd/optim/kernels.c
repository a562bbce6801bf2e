/*
 * kernels.c - element-wise loops. Pure: pointers and sizes, no allocation; any thread.
 *
 * The same bits on every processor: built with -ffp-contract=off and without -ffast-math, cloned for
 * wider vectors. `g` may stand unaligned in a received frame: it is read through an unaligned type.
 */
#include "psd/optim/kernels.h"

#include <stdint.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&      \
    !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

typedef float unaligned_float __attribute__((aligned(1)));
typedef uint32_t unaligned_bits __attribute__((aligned(1), may_alias));

CLONES void
kernel_scale(float *acc, const void *g, float scale, size_t n)
{
    const unaligned_float *x = g;
    size_t i;

    for (i = 0; i < n; i++)
        acc[i] = scale * x[i];
}

CLONES void
kernel_axpy(float *restrict acc, const void *restrict g, float scale, size_t n)
{
    const unaligned_float *x = g;
    size_t i;

    for (i = 0; i < n; i++)
        acc[i] += scale * x[i];
}

CLONES void
kernel_divide(float *g, float divisor, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        g[i] /= divisor;
}

CLONES void
kernel_sgd(float *out, const float *w, const void *g, float lr, size_t n)
{
    const unaligned_float *x = g;
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = w[i] - lr * x[i];
}

/* NaN and Inf are the values whose exponent bits are all set. */
CLONES bool
kernel_is_finite(const void *g, size_t n)
{
    const unaligned_bits *x = g;
    uint32_t bad = 0;
    size_t i;

    for (i = 0; i < n; i++)
        bad |= (uint32_t)((x[i] & 0x7f800000u) == 0x7f800000u);
    return !bad;
}
