/*
 * lookahead.h - momentum whose gradient is taken at a point ahead of the values (EAMSGD; ALGORITHMS section 3).
 *
 *   forward   (the paper)      v = mu*v - lr*g(w + mu*v);      w += v
 *   reversed  (dist-keras)     r = mu*r + lr*lr*g(w + mu*r);   w -= r: r points backwards, and lr counts twice
 *
 * One thread.
 */
#ifndef TRAIN_LOOKAHEAD_H
#define TRAIN_LOOKAHEAD_H

#include "worker/train/model.h"

struct lookahead {
    float lr, mu;
    bool is_reversed;
    uint32_t n_variables;
    uint64_t elements[MODEL_MAX_VARIABLES];
    float *velocity[MODEL_MAX_VARIABLES]; /* owned; v, or r */
    float *point[MODEL_MAX_VARIABLES];    /* owned */
};

/* Velocities 0. DT_E_NO_MEMORY; lookahead_deinit is due in any case. */
enum dt_status lookahead_init(struct lookahead *a, const struct model *model, float lr, float mu,
                              bool is_reversed, struct dt_error *err);
void lookahead_deinit(struct lookahead *a); /* also of zeros */
/* Where the gradient is to be taken; good until the next call. */
const float *const *lookahead_point(struct lookahead *a, float *const *values);
/* The step of variable `i` with the gradient taken there. */
void lookahead_add(struct lookahead *a, uint32_t i, float *values, const float *gradient);

#endif
