/*
 * schedule.h - the rate of a rule as a function of the step. Definitions as in TensorFlow 1.x
 * (tf.train.exponential_decay, piecewise_constant, polynomial_decay, inverse_time_decay, cosine_decay), each
 * with a linear warm-up (Goyal et al. 2017, section 2.2).
 *
 * A schedule is declared by parameters KIND.NAME: "exponential.rate", "piecewise.at1". Private to psd/optim.
 * Computed in double by +, -, *, / alone, so that every processor has the same rate. Any thread.
 */
#ifndef PSD_OPTIM_SCHEDULE_H
#define PSD_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

#define SCHEDULE_MAX_PIECES 8
#define SCHEDULE_MAX_STEPS 16777216 /* 2^24: a float32 counts so far */

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_EXPONENTIAL,
    SCHEDULE_INVERSE_TIME,
    SCHEDULE_POLYNOMIAL,
    SCHEDULE_COSINE,
    SCHEDULE_PIECEWISE,
    SCHEDULE_N_KINDS
};

struct schedule {
    enum schedule_kind kind;
    uint32_t seen; /* a bit for each of `values` that was declared */
    float warmup;  /* steps; 0: none */
    float values[2 *
                 SCHEDULE_MAX_PIECES]; /* by the kind's table; piecewise: at1, lr1, at2, lr2, ... */
};

/* Take the parameter `name`. False: it is none of a schedule's (nothing changed); else *status tells. */
bool schedule_take(struct schedule *s, const char *name, float value, enum dt_status *status,
                   struct dt_error *err);
/* When all were taken: what is missing (defaults, or DT_R_BAD_VALUE), and the order of the pieces. */
enum dt_status schedule_finish(struct schedule *s, struct dt_error *err);
/* Does the rate become 0 at some step (not counting what is too small for a float32)? */
bool schedule_comes_to_zero(const struct schedule *s);
const char *schedule_kind_name(enum schedule_kind kind); /* "exponential"; NULL past the end */

/* The rate at `step`, for the declared rate `lr`. */
float schedule_rate(const struct schedule *s, float lr, uint64_t step);

#endif
