/*
 * racy.c - THE RACY KERNELS of locking none; see racy.h. The only place in psd with updates that get
 * lost by intent. Any thread, several at once on the same arrays.
 */
#include "psd/optim/racy.h"

#include <math.h>
#include <string.h>

float
racy_load(const float *x)
{
    float value;

    __atomic_load(x, &value, __ATOMIC_RELAXED);
    return value;
}

void
racy_store(float *x, float value)
{
    __atomic_store(x, &value, __ATOMIC_RELAXED);
}

static inline float
own(const void *g, size_t i)
{
    float x;

    memcpy(&x, (const char *)g + i * sizeof(x), sizeof(x));
    return x;
}

void
racy_sgd(float *w, const void *g, float lr, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        racy_store(&w[i], racy_load(&w[i]) - lr * own(g, i));
}

void
racy_adagrad(float *w, float *a, const void *g, float lr, float eps, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float x = own(g, i), sum = racy_load(&a[i]) + x * x;

        racy_store(&a[i], sum);
        racy_store(&w[i], racy_load(&w[i]) - lr * x / (sqrtf(sum) + eps));
    }
}

void
racy_adam(float *w, float *m, float *v, const void *g, struct kernel_adam_step step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float x = own(g, i), mean = racy_load(&m[i]), square = racy_load(&v[i]);

        mean += (x - mean) * step.m_share;
        square += (x * x - square) * step.v_share;
        racy_store(&m[i], mean);
        racy_store(&v[i], square);
        racy_store(&w[i], racy_load(&w[i]) - step.alpha * mean / (sqrtf(square) + step.eps));
    }
}

void
racy_momentum(float *w, float *a, const void *g, float lr, float mu, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float sum = mu * racy_load(&a[i]) + own(g, i);

        racy_store(&a[i], sum);
        racy_store(&w[i], racy_load(&w[i]) - lr * sum);
    }
}

void
racy_nesterov(float *w, float *a, const void *g, float lr, float mu, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float x = own(g, i), sum = mu * racy_load(&a[i]) + x;

        racy_store(&a[i], sum);
        racy_store(&w[i], racy_load(&w[i]) - (lr * x + lr * mu * sum));
    }
}

void
racy_rmsprop(float *w, float *ms, float *mom, const void *g, struct kernel_rmsprop_step step,
             size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float x = own(g, i), square = racy_load(&ms[i]), move;

        square += (x * x - square) * step.ms_share;
        move = step.mu * racy_load(&mom[i]) + step.lr * x / sqrtf(square + step.eps);
        racy_store(&ms[i], square);
        racy_store(&mom[i], move);
        racy_store(&w[i], racy_load(&w[i]) - move);
    }
}

void
racy_ftrl(float *w, float *sq, float *z, const void *g, struct kernel_ftrl_step step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float x = own(g, i), before = racy_load(&sq[i]), sum = before + x * x, root = sqrtf(sum);
        float pull = racy_load(&z[i]) + (x - (root - sqrtf(before)) / step.lr * racy_load(&w[i]));
        float edge = pull < 0 ? -step.l1 : step.l1;

        racy_store(&sq[i], sum);
        racy_store(&z[i], pull);
        racy_store(&w[i],
                   fabsf(pull) > step.l1 ? (edge - pull) / (root / step.lr + 2 * step.l2) : 0);
    }
}

void
racy_add(float *w, const void *g, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        racy_store(&w[i], racy_load(&w[i]) + own(g, i));
}

void
racy_assign(float *w, const void *g, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        racy_store(&w[i], own(g, i));
}

void
racy_decay(float *out, const void *g, const float *w, float l2, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = own(g, i) + l2 * racy_load(&w[i]);
}

/* The difference of what is not finite with itself is a NaN, and stays one in the sum. */
bool
racy_is_finite(const float *x, size_t n)
{
    float zero = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        float value = racy_load(&x[i]);

        zero += value - value;
    }
    return zero == 0;
}
