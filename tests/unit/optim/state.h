/*
 * state.h - a slice as a rule sees it: values and slots, made as the store makes them.
 */
#ifndef TESTS_UNIT_OPTIM_STATE_H
#define TESTS_UNIT_OPTIM_STATE_H

#include "psd/optim/optimizer.h"

#define STATE_MAX_PARAMS 24

struct state {
    struct optimizer optimizer;
    size_t n;
    float *w;                          /* owned */
    float *slots[OPTIMIZER_MAX_SLOTS]; /* owned */
};

/* Up to STATE_MAX_PARAMS parameters, ended by one without a name. The test fails when they are refused. */
struct state state_create(const char *rule, const struct optimizer_param *params, const float *w,
                          size_t n);
void state_destroy(struct state *s);
/* One update in place. */
void state_apply(struct state *s, const void *g);

/* The same bits in values and slots. */
void state_expect_equal(const struct state *a, const struct state *b, const char *rule);

#endif
