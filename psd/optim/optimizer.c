/*
 * optimizer.c - the table of update rules. Pure; any thread.
 *
 * A row names its parameters and slots and gives the update; further rules are further rows.
 */
#include "psd/optim/optimizer.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "psd/optim/kernels.h"

struct rule_param {
    const char *name;
    bool required;
    float def;
    float min; /* inclusive */
    float max; /* inclusive */
};

struct optimizer_rule {
    const char *name;
    struct rule_param params[OPTIMIZER_MAX_PARAMS]; /* ends with a NULL name */
    unsigned n_slots;
    const char *slot_names[OPTIMIZER_MAX_SLOTS];
    void (*apply)(const struct optimizer *o, float *out, const float *w, float *const *slots,
                  const void *g, size_t n, uint64_t version);
};

/* w -= lr*g (ALGORITHMS section 1) */
static void
apply_sgd(const struct optimizer *o, float *out, const float *w, float *const *slots, const void *g,
          size_t n, uint64_t version)
{
    (void)slots;
    (void)version;
    kernel_sgd(out, w, g, o->params[0], n);
}

#define ANY_RATE 0.0f, INFINITY

static const struct optimizer_rule rules[] = {
    {.name = "sgd", .params = {{"lr", true, 0.0f, ANY_RATE}}, .apply = apply_sgd},
};

#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static const struct optimizer_rule *
find_rule(const char *name)
{
    size_t i;

    for (i = 0; i < N_RULES; i++) {
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    }
    return NULL;
}

static enum dt_status
unknown_rule(const char *name, struct dt_error *err)
{
    char known[128] = "";
    size_t i, used = 0;

    for (i = 0; i < N_RULES && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                 rules[i].name);
    return dt_fail(err, DT_R_BAD_VALUE, "unknown optimizer %s; known: %s", name, known);
}

static int
find_param(const struct optimizer_rule *rule, const char *name)
{
    int i;

    for (i = 0; i < OPTIMIZER_MAX_PARAMS && rule->params[i].name; i++) {
        if (!strcmp(rule->params[i].name, name))
            return i;
    }
    return -1;
}

static enum dt_status
set_param(struct optimizer *o, const struct optimizer_param *p, unsigned *given,
          struct dt_error *err)
{
    int i = find_param(o->rule, p->name);

    if (i < 0)
        return dt_fail(err, DT_R_BAD_VALUE, "optimizer %s has no parameter %s", o->rule->name,
                       p->name);
    if (!isfinite(p->value) || p->value < o->rule->params[i].min ||
        p->value > o->rule->params[i].max)
        return dt_fail(err, DT_R_BAD_VALUE, "optimizer %s: %s = %g is out of range", o->rule->name,
                       p->name, (double)p->value);
    o->params[i] = p->value;
    *given |= 1u << i;
    return DT_OK;
}

enum dt_status
optimizer_init(struct optimizer *o, const char *rule, const struct optimizer_param *params,
               unsigned n, struct dt_error *err)
{
    unsigned i, given = 0;

    memset(o, 0, sizeof(*o));
    o->rule = find_rule(rule);
    if (!o->rule)
        return unknown_rule(rule, err);
    for (i = 0; i < OPTIMIZER_MAX_PARAMS && o->rule->params[i].name; i++)
        o->params[i] = o->rule->params[i].def;
    for (i = 0; i < n; i++) {
        enum dt_status status = set_param(o, &params[i], &given, err);

        if (status != DT_OK)
            return status;
    }
    for (i = 0; i < OPTIMIZER_MAX_PARAMS && o->rule->params[i].name; i++) {
        if (o->rule->params[i].required && !(given & 1u << i))
            return dt_fail(err, DT_R_BAD_VALUE, "optimizer %s needs the parameter %s", rule,
                           o->rule->params[i].name);
    }
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
    (void)o;
    (void)slot;
    return 0.0f;
}

const char *
optimizer_slot_name(const struct optimizer *o, unsigned slot)
{
    return slot < o->rule->n_slots ? o->rule->slot_names[slot] : "";
}

void
optimizer_apply(const struct optimizer *o, float *out, const float *w, float *const *slots,
                const void *g, size_t n, uint64_t version)
{
    o->rule->apply(o, out, w, slots, g, n, version);
}
