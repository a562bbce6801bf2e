/*
 * rules.h - the rows behind optimizer.h: what parameters and slots a rule has, and how it updates one slice.
 * Private to psd/optim. Rows are constant; any thread.
 */
#ifndef PSD_OPTIM_RULES_H
#define PSD_OPTIM_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/optim/optimizer.h"

#define RULES_FROM_CONSTANT (-1)

struct param_rule {
    const char *name;
    bool required;
    float def;        /* unless required */
    float min, below; /* min <= value < below */
};

struct slot_rule {
    const char *name;
    int start_param; /* index of the parameter that gives the start value, or RULES_FROM_CONSTANT */
    float start;
    bool is_per_slice; /* one element, whatever the slice's size */
};

/* What an apply function gets: one slice. slots[i] are updated in place. */
struct update {
    const float *params;
    float rate; /* params[0], lr, by its schedule; rules without a rate: 0 */
    float *out;
    const float *w;
    float *const *slots;
    const void *g;
    size_t n;
    uint64_t version;
};

struct optimizer_rule {
    const char *name;
    bool positive_rate; /* it divides by its rate */
    unsigned n_params;
    struct param_rule params[OPTIMIZER_MAX_PARAMS]; /* lr is the first, where a rule has a rate */
    unsigned n_slots;
    struct slot_rule slots[OPTIMIZER_MAX_SLOTS];
    /* What ranges cannot say; may be NULL. The text is what is wrong, NULL if nothing. */
    const char *(*check)(const float *params);
    void (*apply)(const struct update *u);
    void (*apply_racy)(const struct update *u); /* out is w; NULL: not without exclusion */
    bool is_damped; /* optimizer_apply_damped; apply is then the case of staleness 0 */
    /* Slots of one element, once an update: apply may be called for one part of a slice after the other. */
    void (*advance)(const struct update *u); /* may be NULL, as the next */
    void (*advance_racy)(const struct update *u);
};

const struct optimizer_rule *rules_at(unsigned index); /* NULL: past the end */

#endif
