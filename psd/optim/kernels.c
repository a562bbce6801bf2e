/*
 * kernels.c - element-wise loops that the compiler vectorises, in one clone for each instruction set
 * of x86-64; the loader picks the best one. Every clone gives the same bits: no FMA contraction, no
 * re-association (see psd/CMakeLists.txt). No state; any thread.
 */
#include "psd/optim/kernels.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "proto/base/clones.h"

/* Element i depends on element i only, also when out is w: no run-time test for overlap. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Unaligned; compiles to a plain (vector) load. */
static inline float
load(const void *g, size_t i)
{
    float x;

    memcpy(&x, (const char *)g + i * sizeof(x), sizeof(x));
    return x;
}

DT_CLONED void
kernel_scale(float *acc, const void *g, float scale, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        acc[i] = scale * load(g, i);
}

DT_CLONED void
kernel_axpy(float *acc, const void *g, float scale, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        acc[i] += scale * load(g, i);
}

DT_CLONED void
kernel_divide(float *g, float divisor, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        g[i] /= divisor;
}

DT_CLONED void
kernel_clip(float *out, const void *g, float limit, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i);

        x = x > limit ? limit : x;
        out[i] = x < -limit ? -limit : x;
    }
}

DT_CLONED void
kernel_decay(float *out, const void *g, const float *w, float l2, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        out[i] = load(g, i) + l2 * w[i];
}

DT_CLONED double
kernel_square_sum(const void *g, size_t n)
{
    double sums[8] = {0}, sum = 0;
    size_t i, k;

    for (i = 0; i + 8 <= n; i += 8) {
        for (k = 0; k < 8; k++) {
            double x = (double)load(g, i + k);

            sums[k] += x * x;
        }
    }
    for (; i < n; i++) {
        double x = (double)load(g, i);

        sums[i % 8] += x * x;
    }
    for (k = 0; k < 8; k++)
        sum += sums[k];
    return sum;
}

DT_CLONED void
kernel_sgd(float *out, const float *w, const void *g, float lr, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        out[i] = w[i] - lr * load(g, i);
}

/* Without an epsilon it is 0: adding that changes no bit of a root. */
DT_CLONED void
kernel_adagrad(float *out, const float *w, float *a, const void *g, float lr, float eps, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i), sum = a[i] + x * x;

        a[i] = sum;
        out[i] = w[i] - lr * x / (sqrtf(sum) + eps);
    }
}

DT_CLONED void
kernel_adam(float *out, const float *w, float *m, float *v, const void *g,
            struct kernel_adam_step step, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i);
        float mean = m[i] + (x - m[i]) * step.m_share;
        float square = v[i] + (x * x - v[i]) * step.v_share;

        m[i] = mean;
        v[i] = square;
        out[i] = w[i] - step.alpha * mean / (sqrtf(square) + step.eps);
    }
}

DT_CLONED void
kernel_momentum(float *out, const float *w, float *a, const void *g, float lr, float mu, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float sum = mu * a[i] + load(g, i);

        a[i] = sum;
        out[i] = w[i] - lr * sum;
    }
}

DT_CLONED void
kernel_nesterov(float *out, const float *w, float *a, const void *g, float lr, float mu, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i), sum = mu * a[i] + x;

        a[i] = sum;
        out[i] = w[i] - (lr * x + lr * mu * sum);
    }
}

DT_CLONED void
kernel_rmsprop(float *out, const float *w, float *ms, float *mom, const void *g,
               struct kernel_rmsprop_step step, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i), square = ms[i] + (x * x - ms[i]) * step.ms_share;
        float move = step.mu * mom[i] + step.lr * x / sqrtf(square + step.eps);

        ms[i] = square;
        mom[i] = move;
        out[i] = w[i] - move;
    }
}

DT_CLONED void
kernel_rmsprop_centered(float *out, const float *w, float *ms, float *mom, float *mg, const void *g,
                        struct kernel_rmsprop_step step, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i), square = ms[i] + (x * x - ms[i]) * step.ms_share;
        float mean = mg[i] + (x - mg[i]) * step.ms_share, variance = square - mean * mean;
        float move;

        variance = variance > 0 ? variance : 0;
        move = step.mu * mom[i] + step.lr * x / sqrtf(variance + step.eps);
        ms[i] = square;
        mg[i] = mean;
        mom[i] = move;
        out[i] = w[i] - move;
    }
}

DT_CLONED void
kernel_ftrl(float *out, const float *w, float *sq, float *z, const void *g,
            struct kernel_ftrl_step step, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++) {
        float x = load(g, i), sum = sq[i] + x * x, root = sqrtf(sum);
        float pull = z[i] + (x - (root - sqrtf(sq[i])) / step.lr * w[i]);
        float edge = pull < 0 ? -step.l1 : step.l1;
        float value = (edge - pull) / (root / step.lr + 2 * step.l2);

        sq[i] = sum;
        z[i] = pull;
        out[i] = fabsf(pull) > step.l1 ? value : 0;
    }
}

DT_CLONED void
kernel_add(float *out, const float *w, const void *g, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        out[i] = w[i] + load(g, i);
}

DT_CLONED void
kernel_add_damped(float *out, const float *w, const void *g, float divisor, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        out[i] = w[i] + load(g, i) / divisor;
}

DT_CLONED void
kernel_assign(float *out, const void *g, size_t n)
{
    size_t i;

    INDEPENDENT
    for (i = 0; i < n; i++)
        out[i] = load(g, i);
}
