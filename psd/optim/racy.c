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
