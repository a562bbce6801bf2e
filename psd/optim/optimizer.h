/*
 * optimizer.h - the table of update rules. A rule is chosen by the name in a declaration.
 */
#ifndef PSD_OPTIM_OPTIMIZER_H
#define PSD_OPTIM_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

#define OPTIMIZER_MAX_SLOTS 3
#define OPTIMIZER_MAX_PARAMS 8

struct optimizer_rule;

struct optimizer { /* a rule with its hyper-parameters; copied by value */
    const struct optimizer_rule *rule;
    float params[OPTIMIZER_MAX_PARAMS];
};

struct optimizer_param { /* name -> value as declared */
    const char *name;
    float value;
};

/* DT_R_BAD_VALUE with a sentence: unknown rule (the known ones are listed), unknown or missing
 * parameter, value out of range (lr must be finite and >= 0). */
enum dt_status optimizer_init(struct optimizer *o, const char *rule,
                              const struct optimizer_param *params, unsigned n,
                              struct dt_error *err);
unsigned optimizer_n_slots(const struct optimizer *o); /* sgd: 0 */
float optimizer_slot_start(const struct optimizer *o, unsigned slot);
const char *optimizer_slot_name(const struct optimizer *o, unsigned slot);

/* One update of a slice: out = rule(w, g). out may be w. `version` = updates applied so far (schedules).
 * slots[i] are updated in place. g may be unaligned. */
void optimizer_apply(const struct optimizer *o, float *out, const float *w, float *const *slots,
                     const void *g, size_t n, uint64_t version);

#endif
