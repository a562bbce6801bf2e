/*
 * optimizer.h - the table of update rules. A rule is chosen by the name in a declaration.
 */
#ifndef PSD_OPTIM_OPTIMIZER_H
#define PSD_OPTIM_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "psd/optim/extras.h"

#define OPTIMIZER_MAX_SLOTS 4
#define OPTIMIZER_MAX_PARAMS 8

struct optimizer_rule;

struct optimizer { /* a rule with its hyper-parameters; copied by value */
    const struct optimizer_rule *rule;
    float params[OPTIMIZER_MAX_PARAMS]; /* of the rule itself */
    struct extras extras;
};

struct optimizer_param { /* name -> value as declared */
    const char *name;
    float value;
};

/* DT_R_BAD_VALUE with a sentence: unknown rule (the known ones are listed), unknown or missing
 * parameter, value out of range (lr must be finite and >= 0), extras that do not go together (extras.h). */
enum dt_status optimizer_init(struct optimizer *o, const char *rule,
                              const struct optimizer_param *params, unsigned n,
                              struct dt_error *err);

/* The names of the rules, one after the other; NULL past the end. */
const char *optimizer_name_at(unsigned index);
bool optimizer_is_known(const char *rule);
/* Does the rule of that name step against a gradient, at a rate (its parameter lr)? False for add, add-damped and assign,
 * which take what is pushed as it is, and for an unknown name. */
bool optimizer_has_rate(const char *rule);

/* The rate of the update from `version` to the next: lr by its schedule. Only of rules with a rate, as the
 * next two. */
float optimizer_rate(const struct optimizer *o, uint64_t version);
/* Another lr from now on; the schedule goes on from it. */
void optimizer_set_rate(struct optimizer *o, float lr);
/* May its lr become that? DT_R_BAD_VALUE with a sentence: the rule has none, a value that optimizer_init would
 * refuse, or a schedule that names its rates itself (piecewise). */
enum dt_status optimizer_check_rate(const struct optimizer *o, float lr, struct dt_error *err);

/* Slots: what a rule keeps beside the values of a slice. momentum, nesterov: momentum; adagrad: accumulator; adam: m, v,
 * beta1_power, beta2_power; rmsprop: ms, momentum (-centered: mg too); ftrl: accumulator, linear; sgd, add,
 * add-damped, assign: none. The caller holds them, filled with the start value at first; they and
 * the values are a slice's whole state. */
unsigned optimizer_n_slots(const struct optimizer *o);
const char *optimizer_slot_name(const struct optimizer *o, unsigned slot);
float optimizer_slot_start(const struct optimizer *o, unsigned slot);
/* Elements of the slot of a slice with n elements: n, or 1 for a number that counts the slice's own
 * updates (adam's beta powers). */
size_t optimizer_slot_elements(const struct optimizer *o, unsigned slot, size_t n);

/* May it be used with locking none? Its slots of one element belong together otherwise (rmsprop-centered:
 * ms and mg of other updates give a negative variance). */
bool optimizer_can_race(const char *rule);

/* locking none: the same update of `w` and `slots` in place while other threads do the same (racy.h). */
void optimizer_apply_racy(const struct optimizer *o, float *w, float *const *slots, const void *g,
                          size_t n, uint64_t version);

/* One update of a slice: out = rule(w, g). out may be w. slots[i] are updated in place; g may be
 * unaligned. `version` = updates applied so far (schedules). Not called when there is nothing to apply:
 * each call advances the slots. */
void optimizer_apply(const struct optimizer *o, float *out, const float *w, float *const *slots,
                     const void *g, size_t n, uint64_t version);

/* Does the rule look at the staleness of what is pushed (add-damped, the rule of DynSGD)? Then this is its update
 * (without slots): w += d / (staleness + 1). Staleness = updates of the slice since the pull behind `g`. */
bool optimizer_is_damped(const struct optimizer *o);
void optimizer_apply_damped(const struct optimizer *o, float *out, const float *w, const void *g,
                            size_t n, uint64_t staleness);

#endif
