/*
 * extras.h - what every rule with a rate can have beside its own parameters, in this order (ALGORITHMS
 * section 1): clip the gradient by value, add weight decay, and then the rule, at the rate of a schedule.
 * Private to psd/optim.
 */
#ifndef PSD_OPTIM_EXTRAS_H
#define PSD_OPTIM_EXTRAS_H

#include <stddef.h>

#include "psd/optim/schedule.h"

struct extras {
    float clip_value;   /* g = min(max(g, -clip_value), clip_value); 0: not clipped */
    float weight_decay; /* g += weight_decay * w; 0: none */
    struct schedule schedule;
};

/* Take the parameter `name`. False: it is no extra (nothing changed); else *status tells. */
bool extras_take(struct extras *e, const char *name, float value, enum dt_status *status,
                 struct dt_error *err);
static inline bool
extras_change_gradient(const struct extras *e)
{
    return e->clip_value > 0 || e->weight_decay > 0;
}

/* out = the gradient as the extras change it, of n elements; `racy`: while others write w. */
void extras_condition(const struct extras *e, float *out, const void *g, const float *w, size_t n);
void extras_condition_racy(const struct extras *e, float *out, const void *g, const float *w,
                           size_t n);

#endif
