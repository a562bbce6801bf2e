/*
 * kernels_ref.h - the plain twins of kernels.h, one element after the other, for the tests: the fast
 * ones must give the same bits.
 */
#ifndef PSD_OPTIM_KERNELS_REF_H
#define PSD_OPTIM_KERNELS_REF_H

#include <stdbool.h>
#include <stddef.h>

#include "psd/optim/kernels.h"

void kernel_scale_ref(float *acc, const void *g, float scale, size_t n);
void kernel_axpy_ref(float *acc, const void *g, float scale, size_t n);
void kernel_divide_ref(float *g, float divisor, size_t n);
void kernel_clip_ref(float *out, const void *g, float limit, size_t n);
void kernel_decay_ref(float *out, const void *g, const float *w, float l2, size_t n);
double kernel_square_sum_ref(const void *g, size_t n);
void kernel_sgd_ref(float *out, const float *w, const void *g, float lr, size_t n);
void kernel_momentum_ref(float *out, const float *w, float *a, const void *g, float lr, float mu,
                         size_t n);
void kernel_nesterov_ref(float *out, const float *w, float *a, const void *g, float lr, float mu,
                         size_t n);
void kernel_adagrad_ref(float *out, const float *w, float *a, const void *g, float lr, float eps,
                        size_t n);
void kernel_adam_ref(float *out, const float *w, float *m, float *v, const void *g,
                     struct kernel_adam_step step, size_t n);
void kernel_rmsprop_ref(float *out, const float *w, float *ms, float *mom, const void *g,
                        struct kernel_rmsprop_step step, size_t n);
void kernel_rmsprop_centered_ref(float *out, const float *w, float *ms, float *mom, float *mg,
                                 const void *g, struct kernel_rmsprop_step step, size_t n);
void kernel_ftrl_ref(float *out, const float *w, float *sq, float *z, const void *g,
                     struct kernel_ftrl_step step, size_t n);
void kernel_add_ref(float *out, const float *w, const void *g, size_t n);
void kernel_add_damped_ref(float *out, const float *w, const void *g, float divisor, size_t n);
void kernel_assign_ref(float *out, const void *g, size_t n);
bool kernel_is_finite_ref(const void *g, size_t n);

#endif
