/*
 * kernels.h - element-wise loops: pointers and sizes only, no allocation, the same bits on every
 * processor (built with -ffp-contract=off and without -ffast-math; see CMakeLists.txt).
 *
 * Sources of the equations: ALGORITHMS section 1 (TensorFlow's training ops). `g` may be unaligned (it
 * may stand in a received frame): it is read by memcpy-like loads. Other pointers are 4-byte aligned.
 * `out` may be `w` (in place); slots are updated in place; no other arrays may overlap.
 * Each has a plain reference twin (suffix _ref) for the tests: kernels_ref.h.
 */
#ifndef PSD_OPTIM_KERNELS_H
#define PSD_OPTIM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

/* acc[i] = scale * g[i] (acc may be g)   and   acc[i] += scale * g[i] */
void kernel_scale(float *acc, const void *g, float scale, size_t n);
void kernel_axpy(float *acc, const void *g, float scale, size_t n);
/* g[i] /= divisor (in place) */
void kernel_divide(float *g, float divisor, size_t n);
/* out[i] = min(max(g[i], -limit), limit), with limit > 0; out may be g */
void kernel_clip(float *out, const void *g, float limit, size_t n);
/* out[i] = g[i] + l2 * w[i]; out may be g */
void kernel_decay(float *out, const void *g, const float *w, float l2, size_t n);
/* The sum of the squares in double: 8 sums of every eighth element each, added up in order */
double kernel_square_sum(const void *g, size_t n);
/* out[i] = w[i] - lr * g[i] */
void kernel_sgd(float *out, const float *w, const void *g, float lr, size_t n);
/* a[i] = mu * a[i] + g[i]; out[i] = w[i] - lr * a[i], with the new a */
void kernel_momentum(float *out, const float *w, float *a, const void *g, float lr, float mu,
                     size_t n);
/* a[i] = mu * a[i] + g[i]; out[i] = w[i] - (lr * g[i] + lr * mu * a[i]), with the new a */
void kernel_nesterov(float *out, const float *w, float *a, const void *g, float lr, float mu,
                     size_t n);
/* a[i] += g[i] * g[i]; out[i] = w[i] - lr * g[i] / (sqrt(a[i]) + eps), with the new a */
void kernel_adagrad(float *out, const float *w, float *a, const void *g, float lr, float eps,
                    size_t n);

struct kernel_adam_step { /* the numbers of one step of adam */
    float alpha;          /* the rate, corrected for the start of m and v at zero */
    float m_share;        /* 1 - beta1 */
    float v_share;        /* 1 - beta2 */
    float eps;
};

/* m[i] += (g[i] - m[i]) * m_share; v[i] += (g[i] * g[i] - v[i]) * v_share;
 * out[i] = w[i] - alpha * m[i] / (sqrt(v[i]) + eps), with the new m and v */
void kernel_adam(float *out, const float *w, float *m, float *v, const void *g,
                 struct kernel_adam_step step, size_t n);
struct kernel_rmsprop_step {
    float lr;
    float ms_share; /* 1 - rho */
    float mu;
    float eps;
};

/* ms[i] += (g[i] * g[i] - ms[i]) * ms_share; mom[i] = mu * mom[i] + lr * g[i] / sqrt(ms[i] + eps), with the
 * new ms; out[i] = w[i] - mom[i] */
void kernel_rmsprop(float *out, const float *w, float *ms, float *mom, const void *g,
                    struct kernel_rmsprop_step step, size_t n);
/* The same with mg[i] += (g[i] - mg[i]) * ms_share and the root of max(ms[i] - mg[i] * mg[i], 0) + eps */
void kernel_rmsprop_centered(float *out, const float *w, float *ms, float *mom, float *mg,
                             const void *g, struct kernel_rmsprop_step step, size_t n);

struct kernel_ftrl_step {
    float lr; /* above 0 */
    float l1;
    float l2;
};

/* sq' = sq[i] + g[i] * g[i]; z[i] += g[i] - (sqrt(sq') - sqrt(sq[i])) / lr * w[i]; sq[i] = sq';
 * out[i] = |z[i]| > l1 ? (sign(z[i]) * l1 - z[i]) / (sqrt(sq') / lr + 2 * l2) : 0, with the new z */
void kernel_ftrl(float *out, const float *w, float *sq, float *z, const void *g,
                 struct kernel_ftrl_step step, size_t n);
/* out[i] = w[i] + g[i] */
void kernel_add(float *out, const float *w, const void *g, size_t n);
/* out[i] = w[i] + g[i] / divisor */
void kernel_add_damped(float *out, const float *w, const void *g, float divisor, size_t n);
/* out[i] = g[i] */
void kernel_assign(float *out, const void *g, size_t n);

#endif
