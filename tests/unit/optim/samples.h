/*
 * samples.h - reproducible numbers and unaligned copies for the tests of the kernels.
 */
#ifndef TESTS_UNIT_OPTIM_SAMPLES_H
#define TESTS_UNIT_OPTIM_SAMPLES_H

#include <stddef.h>

#define N_SIZES 11
extern const size_t sample_sizes[N_SIZES];

/* n numbers of many magnitudes and both signs; the caller frees. Never NULL, also for n = 0. */
float *samples(unsigned seed, size_t n);

/* A copy of x at `offset` (0..3) bytes off a float's alignment. *base is what to free. */
const void *unaligned_copy(const float *x, size_t n, unsigned offset, void **base);

#endif
