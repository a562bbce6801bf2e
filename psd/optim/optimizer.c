/*
 * optimizer.c - the update rules as rows of one table: parameters, slots, and how one slice is
 * updated. A new rule is a new row and a new apply function. Rows are constant; any thread.
 */
#include "psd/optim/optimizer.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "psd/optim/kernels.h"

#define FROM_CONSTANT (-1)

struct param_rule {
    const char *name;
    bool required;
    float def; /* unless required */
    float min, max;
};

struct slot_rule {
    const char *name;
    int start_param; /* index of the parameter that gives the start value, or FROM_CONSTANT */
    float start;
};

/* What an apply function gets: one slice. slots[i] are updated in place. */
struct update {
    const float *params;
    float *out;
    const float *w;
    float *const *slots;
    const void *g;
    size_t n;
    uint64_t version;
};

struct optimizer_rule {
    const char *name;
    unsigned n_params;
    struct param_rule params[OPTIMIZER_MAX_PARAMS];
    unsigned n_slots;
    struct slot_rule slots[OPTIMIZER_MAX_SLOTS];
    void (*apply)(const struct update *u);
};

#define LR                                                                                         \
    {                                                                                              \
        .name = "lr", .required = true, .min = 0, .max = HUGE_VALF                                 \
    }

/* w -= lr * g */
static void
apply_sgd(const struct update *u)
{
    kernel_sgd(u->out, u->w, u->g, u->params[0], u->n);
}

static const struct optimizer_rule rules[] = {
    {.name = "sgd", .n_params = 1, .params = {LR}, .apply = apply_sgd},
};

#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static const struct optimizer_rule *
find_rule(const char *name)
{
    size_t i;

    for (i = 0; i < N_RULES; i++) {
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    }
    return NULL;
}

static enum dt_status
fail_rule(const char *name, struct dt_error *err)
{
    char known[256] = "";
    size_t i, len = 0;

    for (i = 0; i < N_RULES && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
                                rules[i].name);
    return dt_fail(err, DT_R_BAD_VALUE, "unknown optimizer '%.64s'; known are: %s", name, known);
}

static int
find_param(const struct optimizer_rule *rule, const char *name)
{
    unsigned i;

    for (i = 0; i < rule->n_params; i++) {
        if (strcmp(rule->params[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Also false for NaN. */
static bool
is_in_range(const struct param_rule *p, float value)
{
    return isfinite(value) && value >= p->min && value <= p->max;
}

static enum dt_status
fail_range(const struct optimizer_rule *rule, const struct param_rule *p, float value,
           struct dt_error *err)
{
    if (isinf(p->max))
        return dt_fail(err, DT_R_BAD_VALUE, "%s: %s is %g, must be finite and at least %g",
                       rule->name, p->name, (double)value, (double)p->min);
    return dt_fail(err, DT_R_BAD_VALUE, "%s: %s is %g, must be from %g to %g", rule->name, p->name,
                   (double)value, (double)p->min, (double)p->max);
}

/* The declared parameters into `values`; `seen` has a bit for each. */
static enum dt_status
take_params(const struct optimizer_rule *rule, const struct optimizer_param *params, unsigned n,
            float *values, unsigned *seen, struct dt_error *err)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        int at = find_param(rule, params[i].name);

        if (at < 0)
            return dt_fail(err, DT_R_BAD_VALUE, "%s: has no parameter '%.64s'", rule->name,
                           params[i].name);
        if (*seen >> at & 1)
            return dt_fail(err, DT_R_BAD_VALUE, "%s: %s is given twice", rule->name,
                           rule->params[at].name);
        if (!is_in_range(&rule->params[at], params[i].value))
            return fail_range(rule, &rule->params[at], params[i].value, err);
        values[at] = params[i].value;
        *seen |= 1u << at;
    }
    return DT_OK;
}

enum dt_status
optimizer_init(struct optimizer *o, const char *rule, const struct optimizer_param *params,
               unsigned n, struct dt_error *err)
{
    struct optimizer made = {.rule = find_rule(rule)};
    unsigned seen = 0, i;
    enum dt_status s;

    if (!made.rule)
        return fail_rule(rule, err);
    s = take_params(made.rule, params, n, made.params, &seen, err);
    if (s != DT_OK)
        return s;
    for (i = 0; i < made.rule->n_params; i++) {
        if (seen >> i & 1)
            continue;
        if (made.rule->params[i].required)
            return dt_fail(err, DT_R_BAD_VALUE, "%s: parameter %s is missing", made.rule->name,
                           made.rule->params[i].name);
        made.params[i] = made.rule->params[i].def;
    }
    *o = made;
    return DT_OK;
}

unsigned
optimizer_n_slots(const struct optimizer *o)
{
    return o->rule->n_slots;
}

float
optimizer_slot_start(const struct optimizer *o, unsigned slot)
{
    const struct slot_rule *s = &o->rule->slots[slot];

    return s->start_param == FROM_CONSTANT ? s->start : o->params[s->start_param];
}

const char *
optimizer_slot_name(const struct optimizer *o, unsigned slot)
{
    return o->rule->slots[slot].name;
}

void
optimizer_apply(const struct optimizer *o, float *out, const float *w, float *const *slots,
                const void *g, size_t n, uint64_t version)
{
    const struct update u = {
        .params = o->params,
        .out = out,
        .w = w,
        .slots = slots,
        .g = g,
        .n = n,
        .version = version,
    };

    o->rule->apply(&u);
}
