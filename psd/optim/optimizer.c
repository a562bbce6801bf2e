/*
 * optimizer.c - from a declaration's words to a rule with its parameters; what a rule keeps. Any thread.
 */
#include "psd/optim/optimizer.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "psd/optim/kernels.h"
#include "psd/optim/rules.h"

static const struct optimizer_rule *
find_rule(const char *name)
{
    const struct optimizer_rule *rule;
    unsigned i;

    for (i = 0; (rule = rules_at(i)) && strcmp(rule->name, name) != 0; i++)
        ;
    return rule;
}

static enum dt_status
fail_rule(const char *name, struct dt_error *err)
{
    char known[256] = "";
    size_t len = 0;
    unsigned i;

    for (i = 0; rules_at(i) && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
                                rules_at(i)->name);
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

const char *
optimizer_name_at(unsigned index)
{
    return rules_at(index) ? rules_at(index)->name : NULL;
}

bool
optimizer_is_known(const char *rule)
{
    return find_rule(rule) != NULL;
}

bool
optimizer_has_rate(const char *name)
{
    const struct optimizer_rule *rule = find_rule(name);

    return rule && find_param(rule, "lr") >= 0;
}

/* Also false for NaN. */
static bool
is_in_range(const struct param_rule *p, float value)
{
    return value >= p->min && value < p->below;
}

static enum dt_status
fail_range(const struct optimizer_rule *rule, const struct param_rule *p, float value,
           struct dt_error *err)
{
    if (isinf(p->below))
        return dt_fail(err, DT_R_BAD_VALUE, "%s: %s is %g, must be finite and at least %g",
                       rule->name, p->name, (double)value, (double)p->min);
    return dt_fail(err, DT_R_BAD_VALUE, "%s: %s is %g, must be at least %g and below %g",
                   rule->name, p->name, (double)value, (double)p->min, (double)p->below);
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

/* What was not declared. */
static enum dt_status
take_defaults(const struct optimizer_rule *rule, float *values, unsigned seen, struct dt_error *err)
{
    unsigned i;

    for (i = 0; i < rule->n_params; i++) {
        if (seen >> i & 1)
            continue;
        if (rule->params[i].required)
            return dt_fail(err, DT_R_BAD_VALUE, "%s: parameter %s is missing", rule->name,
                           rule->params[i].name);
        values[i] = rule->params[i].def;
    }
    return DT_OK;
}

enum dt_status
optimizer_init(struct optimizer *o, const char *rule, const struct optimizer_param *params,
               unsigned n, struct dt_error *err)
{
    struct optimizer made = {.rule = find_rule(rule)};
    const char *wrong;
    unsigned seen = 0;
    enum dt_status s;

    if (!made.rule)
        return fail_rule(rule, err);
    s = take_params(made.rule, params, n, made.params, &seen, err);
    if (s == DT_OK)
        s = take_defaults(made.rule, made.params, seen, err);
    if (s != DT_OK)
        return s;
    wrong = made.rule->check ? made.rule->check(made.params) : NULL;
    if (wrong)
        return dt_fail(err, DT_R_BAD_VALUE, "%s: %s", made.rule->name, wrong);
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

    return s->start_param == RULES_FROM_CONSTANT ? s->start : o->params[s->start_param];
}

const char *
optimizer_slot_name(const struct optimizer *o, unsigned slot)
{
    return o->rule->slots[slot].name;
}

size_t
optimizer_slot_elements(const struct optimizer *o, unsigned slot, size_t n)
{
    return o->rule->slots[slot].is_per_slice ? 1 : n;
}

void
optimizer_apply(const struct optimizer *o, float *out, const float *w, float *const *slots,
                const void *g, size_t n, uint64_t version)
{
    o->rule->apply(&(struct update){o->params, out, w, slots, g, n, version});
}

bool
optimizer_is_damped(const struct optimizer *o)
{
    return o->rule->is_damped;
}

void
optimizer_apply_damped(const struct optimizer *o, float *out, const float *w, const void *g,
                       size_t n, uint64_t staleness)
{
    (void)o; /* there is one such rule */
    kernel_add_damped(out, w, g, (float)(staleness + 1), n);
}

bool
optimizer_can_race(const char *rule)
{
    const struct optimizer_rule *r = find_rule(rule);

    return r && r->apply_racy;
}

void
optimizer_apply_racy(const struct optimizer *o, float *w, float *const *slots, const void *g,
                     size_t n, uint64_t version)
{
    o->rule->apply_racy(&(struct update){o->params, w, w, slots, g, n, version});
}
