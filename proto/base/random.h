/*
 * random.h - unpredictable ids (getrandom). Reproducible numbers are Philox (worker/train).
 */
#ifndef DT_BASE_RANDOM_H
#define DT_BASE_RANDOM_H

#include <stdint.h>

uint64_t dt_random_u64(void); /* never 0 */
void dt_random_bytes(void *out, unsigned n);

#endif
