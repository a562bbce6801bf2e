/*
 * kernels_ref.c - the kernels as one would write them on paper. Products are rounded before they are
 * added (the volatile holds that for every compiler flag and processor). Any thread.
 */
#include "psd/optim/kernels_ref.h"

#include <math.h>
#include <string.h>

static float
load(const void *g, size_t i)
{
    float x;

    memcpy(&x, (const char *)g + i * sizeof(x), sizeof(x));
    return x;
}

static float
multiply(float a, float b)
{
    volatile float product = a * b;

    return product;
}

void
kernel_scale_ref(float *acc, const void *g, float scale, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        acc[i] = multiply(scale, load(g, i));
}

void
kernel_axpy_ref(float *acc, const void *g, float scale, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        acc[i] = acc[i] + multiply(scale, load(g, i));
}

void
kernel_divide_ref(float *g, float divisor, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        g[i] = g[i] / divisor;
}

void
kernel_clip_ref(float *out, const void *g, float limit, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = fminf(fmaxf(load(g, i), -limit), limit);
}

void
kernel_decay_ref(float *out, const void *g, const float *w, float l2, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = load(g, i) + multiply(l2, w[i]);
}

double
kernel_square_sum_ref(const void *g, size_t n)
{
    double sum = 0;
    size_t i, k;

    for (k = 0; k < 8; k++) {
        double part = 0;

        for (i = k; i < n; i += 8)
            part += (double)load(g, i) * (double)load(g, i);
        sum += part;
    }
    return sum;
}

void
kernel_sgd_ref(float *out, const float *w, const void *g, float lr, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = w[i] - multiply(lr, load(g, i));
}

void
kernel_adagrad_ref(float *out, const float *w, float *a, const void *g, float lr, float eps,
                   size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        a[i] = a[i] + multiply(load(g, i), load(g, i));
        out[i] = w[i] - multiply(lr, load(g, i)) / (sqrtf(a[i]) + eps);
    }
}

void
kernel_adam_ref(float *out, const float *w, float *m, float *v, const void *g,
                struct kernel_adam_step step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        m[i] = m[i] + multiply(load(g, i) - m[i], step.m_share);
        v[i] = v[i] + multiply(multiply(load(g, i), load(g, i)) - v[i], step.v_share);
        out[i] = w[i] - multiply(step.alpha, m[i]) / (sqrtf(v[i]) + step.eps);
    }
}

void
kernel_momentum_ref(float *out, const float *w, float *a, const void *g, float lr, float mu,
                    size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        a[i] = multiply(mu, a[i]) + load(g, i);
        out[i] = w[i] - multiply(lr, a[i]);
    }
}

void
kernel_nesterov_ref(float *out, const float *w, float *a, const void *g, float lr, float mu,
                    size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        a[i] = multiply(mu, a[i]) + load(g, i);
        out[i] = w[i] - (multiply(lr, load(g, i)) + multiply(multiply(lr, mu), a[i]));
    }
}

void
kernel_rmsprop_ref(float *out, const float *w, float *ms, float *mom, const void *g,
                   struct kernel_rmsprop_step step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        ms[i] = ms[i] + multiply(multiply(load(g, i), load(g, i)) - ms[i], step.ms_share);
        mom[i] =
            multiply(step.mu, mom[i]) + multiply(step.lr, load(g, i)) / sqrtf(ms[i] + step.eps);
        out[i] = w[i] - mom[i];
    }
}

void
kernel_rmsprop_centered_ref(float *out, const float *w, float *ms, float *mom, float *mg,
                            const void *g, struct kernel_rmsprop_step step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float variance;

        ms[i] = ms[i] + multiply(multiply(load(g, i), load(g, i)) - ms[i], step.ms_share);
        mg[i] = mg[i] + multiply(load(g, i) - mg[i], step.ms_share);
        variance = ms[i] - multiply(mg[i], mg[i]);
        mom[i] = multiply(step.mu, mom[i]) +
                 multiply(step.lr, load(g, i)) / sqrtf(fmaxf(variance, 0) + step.eps);
        out[i] = w[i] - mom[i];
    }
}

void
kernel_ftrl_ref(float *out, const float *w, float *sq, float *z, const void *g,
                struct kernel_ftrl_step step, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float sum = sq[i] + multiply(load(g, i), load(g, i));
        float sigma = (sqrtf(sum) - sqrtf(sq[i])) / step.lr;

        z[i] = z[i] + (load(g, i) - multiply(sigma, w[i]));
        sq[i] = sum;
        out[i] = 0;
        if (fabsf(z[i]) > step.l1)
            out[i] = (copysignf(step.l1, z[i]) - z[i]) / (sqrtf(sum) / step.lr + 2 * step.l2);
    }
}

void
kernel_add_ref(float *out, const float *w, const void *g, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = w[i] + load(g, i);
}

void
kernel_add_damped_ref(float *out, const float *w, const void *g, float divisor, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = w[i] + load(g, i) / divisor;
}

void
kernel_assign_ref(float *out, const void *g, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        out[i] = load(g, i);
}

bool
kernel_is_finite_ref(const void *g, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!isfinite(load(g, i)))
            return false;
    }
    return true;
}
