/*
 * philox.h - reproducible numbers: a pure function of (seed, counter), the same on every machine.
 *
 * Philox4x32-10 (Salmon et al. 2011, Random123). Every use has a domain of its own, so that the
 * numbers of one never meet those of another. Unpredictable ids are dt_random (proto/base).
 */
#ifndef TRAIN_PHILOX_H
#define TRAIN_PHILOX_H

#include <stdint.h>

enum philox_domain { /* fixed for good: shuffles and initial values depend on them */
                     PHILOX_ORDER = 1,
                     PHILOX_LATE_ORDER = 2,
                     PHILOX_INIT = 3,
};

struct philox_block {
    uint32_t v[4];
};

/* Key: `seed`. Counter: `position` (64 bit), `stream` (e.g. a rank or a variable), then domain and
 * the low 24 bits of `index`. */
struct philox_block philox(uint64_t seed, enum philox_domain domain, uint32_t index,
                           uint32_t stream, uint64_t position);

#endif
