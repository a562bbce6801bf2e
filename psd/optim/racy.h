/*
 * racy.h - THE RACY KERNELS of locking none (Hogwild!): the rules of optimizer.h, in place, on values and
 * slots that other threads update and read at the same time.
 *
 * Every element is loaded and stored whole by a relaxed atomic access, so there are no torn floats and
 * no undefined behaviour; between the load and the store of an element another thread may store, and
 * that update is lost, by intent. Without another thread each rule gives the same bits as its
 * twin in kernels.h. Scalar loops: atomic accesses are not vectorised.
 */
#ifndef PSD_OPTIM_RACY_H
#define PSD_OPTIM_RACY_H

#include <stdbool.h>
#include <stddef.h>

#include "psd/optim/kernels.h"

/* As kernel_sgd, kernel_adagrad, ... with out = w. `g` is nobody else's and may be unaligned. */
void racy_sgd(float *w, const void *g, float lr, size_t n);
void racy_momentum(float *w, float *a, const void *g, float lr, float mu, size_t n);
void racy_nesterov(float *w, float *a, const void *g, float lr, float mu, size_t n);
void racy_adagrad(float *w, float *a, const void *g, float lr, float eps, size_t n);
void racy_adam(float *w, float *m, float *v, const void *g, struct kernel_adam_step step, size_t n);
void racy_rmsprop(float *w, float *ms, float *mom, const void *g, struct kernel_rmsprop_step step,
                  size_t n);
void racy_ftrl(float *w, float *sq, float *z, const void *g, struct kernel_ftrl_step step,
               size_t n);
void racy_add(float *w, const void *g, size_t n);
void racy_assign(float *w, const void *g, size_t n);
/* As kernel_decay with a gradient of one's own: only w is read while others write it. */
void racy_decay(float *out, const void *g, const float *w, float l2, size_t n);

/* No NaN and no Inf, so far as one can see. */
bool racy_is_finite(const float *x, size_t n);

/* One number that several threads use: a slot of one element. */
float racy_load(const float *x);
void racy_store(float *x, float value);

#endif
