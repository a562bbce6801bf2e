/*
 * fingerprint.h - 64 bits that stand for the bits of many numbers (XXH3).
 */
#ifndef TRAIN_FINGERPRINT_H
#define TRAIN_FINGERPRINT_H

#include "worker/train/dataset.h"

/* Of all variables' buffers one after the other. 0: `buffers` is NULL, or memory is short. */
uint64_t fingerprint_values(const float *const *buffers, const uint64_t *elements, uint32_t n);
/* Rows, shape, features and labels. 0: memory is short. */
uint64_t fingerprint_data(const struct dataset *d);

#endif
