/*
 * optimizer.c - from a declaration's words to a rule with its parameters and extras; what a rule keeps; an
 * update. Any thread.
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

static bool
follows_gradient(const struct optimizer_rule *rule)
{
    return find_param(rule, "lr") >= 0;
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

    return rule && follows_gradient(rule);
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

/* What is no parameter of the rule itself. */
static enum dt_status
take_extra(struct optimizer *o, const struct optimizer_param *p, struct dt_error *err)
{
    struct extras none = {0};
    enum dt_status s = DT_OK;

    if (!extras_take(follows_gradient(o->rule) ? &o->extras : &none, p->name, p->value, &s, err))
        return dt_fail(err, DT_R_BAD_VALUE, "%s: has no parameter '%.64s'", o->rule->name, p->name);
    if (!follows_gradient(o->rule))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "%s: takes what is pushed as it is, with neither rate nor gradient: it has "
                       "no %.64s",
                       o->rule->name, p->name);
    return s == DT_OK ? s : dt_fail_prefix(err, "%s", o->rule->name);
}

/* The declared parameters; `seen` has a bit for each of the rule's own. */
static enum dt_status
take_params(struct optimizer *o, const struct optimizer_param *params, unsigned n, unsigned *seen,
            struct dt_error *err)
{
    const struct optimizer_rule *rule = o->rule;
    enum dt_status s = DT_OK;
    unsigned i;

    for (i = 0; s == DT_OK && i < n; i++) {
        int at = find_param(rule, params[i].name);

        if (at < 0) {
            s = take_extra(o, &params[i], err);
            continue;
        }
        if (*seen >> at & 1)
            return dt_fail(err, DT_R_BAD_VALUE, "%s: %s is given twice", rule->name,
                           rule->params[at].name);
        if (!is_in_range(&rule->params[at], params[i].value))
            return fail_range(rule, &rule->params[at], params[i].value, err);
        o->params[at] = params[i].value;
        *seen |= 1u << at;
    }
    return s;
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

/* What the ranges of single parameters cannot say. */
static enum dt_status
check_whole(struct optimizer *o, struct dt_error *err)
{
    const struct optimizer_rule *rule = o->rule;
    const char *wrong = rule->check ? rule->check(o->params) : NULL;

    if (wrong)
        return dt_fail(err, DT_R_BAD_VALUE, "%s: %s", rule->name, wrong);
    if (schedule_finish(&o->extras.schedule, err) != DT_OK)
        return dt_fail_prefix(err, "%s", rule->name);
    if (!rule->positive_rate)
        return DT_OK;
    if (o->params[0] == 0)
        return dt_fail(err, DT_R_BAD_VALUE, "%s: lr is 0, must be above 0", rule->name);
    if (schedule_comes_to_zero(&o->extras.schedule))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "%s: the rate by schedule %s comes to 0, and it divides by its rate",
                       rule->name, schedule_kind_name(o->extras.schedule.kind));
    return DT_OK;
}

enum dt_status
optimizer_init(struct optimizer *o, const char *rule, const struct optimizer_param *params,
               unsigned n, struct dt_error *err)
{
    struct optimizer made = {.rule = find_rule(rule)};
    unsigned seen = 0;
    enum dt_status s;

    if (!made.rule)
        return fail_rule(rule, err);
    s = take_params(&made, params, n, &seen, err);
    if (s == DT_OK)
        s = take_defaults(made.rule, made.params, seen, err);
    if (s == DT_OK)
        s = check_whole(&made, err);
    if (s == DT_OK)
        *o = made;
    return s;
}

float
optimizer_rate(const struct optimizer *o, uint64_t version)
{
    return schedule_rate(&o->extras.schedule, o->params[0], version);
}

void
optimizer_set_rate(struct optimizer *o, float lr)
{
    o->params[0] = lr;
}

enum dt_status
optimizer_check_rate(const struct optimizer *o, float lr, struct dt_error *err)
{
    struct optimizer changed = *o;

    if (!follows_gradient(o->rule))
        return dt_fail(err, DT_R_BAD_VALUE, "%s: has no lr", o->rule->name);
    if (o->extras.schedule.kind == SCHEDULE_PIECEWISE)
        return dt_fail(err, DT_R_BAD_VALUE, "%s: its schedule piecewise names its rates itself",
                       o->rule->name);
    if (!is_in_range(&o->rule->params[0], lr))
        return fail_range(o->rule, &o->rule->params[0], lr, err);
    optimizer_set_rate(&changed, lr);
    return check_whole(&changed, err);
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

#define PART 2048 /* elements: a changed gradient is made and used while it is in the first cache */

typedef void apply_fn(const struct update *u);
typedef void condition_fn(const struct extras *e, float *out, const void *g, const float *w,
                          size_t n);

/* The gradient as the extras change it, and the rule, part by part: no pass over memory of its own. */
static void
update_in_parts(const struct optimizer *o, const struct update *whole, apply_fn *apply,
                condition_fn *condition)
{
    float *slots[OPTIMIZER_MAX_SLOTS];
    float gradient[PART];
    struct update u = *whole;
    size_t done;
    unsigned i;

    u.slots = slots;
    u.g = gradient;
    for (done = 0; done < whole->n; done += u.n) {
        u.n = whole->n - done < PART ? whole->n - done : PART;
        u.out = whole->out + done;
        u.w = whole->w + done;
        for (i = 0; i < o->rule->n_slots; i++)
            slots[i] = whole->slots[i] + (o->rule->slots[i].is_per_slice ? 0 : done);
        condition(&o->extras, gradient, (const char *)whole->g + done * sizeof(float), u.w, u.n);
        apply(&u);
    }
}

static struct update
make_update(const struct optimizer *o, uint64_t version)
{
    struct update u = {.params = o->params};

    u.rate = follows_gradient(o->rule) ? optimizer_rate(o, version) : 0;
    return u;
}

void
optimizer_apply(const struct optimizer *o, float *out, const float *w, float *const *slots,
                const void *g, size_t n, uint64_t version)
{
    struct update u = make_update(o, version);

    u.out = out;
    u.w = w;
    u.slots = slots;
    u.g = g;
    u.n = n;
    if (extras_change_gradient(&o->extras))
        update_in_parts(o, &u, o->rule->apply, extras_condition);
    else
        o->rule->apply(&u);
    if (o->rule->advance)
        o->rule->advance(&u);
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
    struct update u = make_update(o, version);

    u.out = w;
    u.w = w;
    u.slots = slots;
    u.g = g;
    u.n = n;
    if (extras_change_gradient(&o->extras))
        update_in_parts(o, &u, o->rule->apply_racy, extras_condition_racy);
    else
        o->rule->apply_racy(&u);
    if (o->rule->advance_racy)
        o->rule->advance_racy(&u);
}
