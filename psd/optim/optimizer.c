/*
 * optimizer.c - the update rules as rows of one table: parameters, slots, and how one slice is
 * updated. A new rule is a new row and a new apply function. Rows are constant; any thread.
 */
#include "psd/optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "psd/optim/kernels.h"
#include "psd/optim/racy.h"

#define FROM_CONSTANT (-1)

struct param_rule {
    const char *name;
    bool required;
    float def;        /* unless required */
    float min, below; /* min <= value < below */
};

struct slot_rule {
    const char *name;
    int start_param; /* index of the parameter that gives the start value, or FROM_CONSTANT */
    float start;
    bool is_per_slice; /* one element, whatever the slice's size */
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
    /* What ranges cannot say; may be NULL. The text is what is wrong, NULL if nothing. */
    const char *(*check)(const float *params);
    void (*apply)(const struct update *u);
    void (*apply_racy)(const struct update *u); /* out is w */
};

#define LR                                                                                         \
    {                                                                                              \
        .name = "lr", .required = true, .below = HUGE_VALF                                         \
    }

/* w -= lr * g */
static void
apply_sgd(const struct update *u)
{
    kernel_sgd(u->out, u->w, u->g, u->params[0], u->n);
}

static void
racy_apply_sgd(const struct update *u)
{
    racy_sgd(u->out, u->g, u->params[0], u->n);
}

enum { ADAGRAD_LR, ADAGRAD_START, ADAGRAD_EPS };

/* a += g * g; w -= lr * g / (sqrt(a) + eps) */
static void
apply_adagrad(const struct update *u)
{
    const float *p = u->params;

    kernel_adagrad(u->out, u->w, u->slots[0], u->g, p[ADAGRAD_LR], p[ADAGRAD_EPS], u->n);
}

static void
racy_apply_adagrad(const struct update *u)
{
    const float *p = u->params;

    racy_adagrad(u->out, u->slots[0], u->g, p[ADAGRAD_LR], p[ADAGRAD_EPS], u->n);
}

/* An element whose gradients were all zero would become 0 / 0. */
static const char *
check_adagrad(const float *p)
{
    if (p[ADAGRAD_START] == 0 && p[ADAGRAD_EPS] == 0)
        return "initial_accumulator is 0, must be above 0 when eps is 0";
    return NULL;
}

enum { ADAM_LR, ADAM_BETA1, ADAM_BETA2, ADAM_EPS };
enum { ADAM_M, ADAM_V, ADAM_BETA1_POWER, ADAM_BETA2_POWER };

/* The powers are those of this step, t: they start at beta^1 and go on to t + 1 after use. */
static struct kernel_adam_step
adam_step(const float *p, float power1, float power2)
{
    return (struct kernel_adam_step){
        .alpha = p[ADAM_LR] * sqrtf(1 - power2) / (1 - power1),
        .m_share = 1 - p[ADAM_BETA1],
        .v_share = 1 - p[ADAM_BETA2],
        .eps = p[ADAM_EPS],
    };
}

static void
apply_adam(const struct update *u)
{
    const float *p = u->params;
    float *power1 = u->slots[ADAM_BETA1_POWER], *power2 = u->slots[ADAM_BETA2_POWER];

    kernel_adam(u->out, u->w, u->slots[ADAM_M], u->slots[ADAM_V], u->g,
                adam_step(p, *power1, *power2), u->n);
    *power1 *= p[ADAM_BETA1];
    *power2 *= p[ADAM_BETA2];
}

static void
racy_apply_adam(const struct update *u)
{
    const float *p = u->params;
    float *power1 = u->slots[ADAM_BETA1_POWER], *power2 = u->slots[ADAM_BETA2_POWER];
    float power1_now = racy_load(power1), power2_now = racy_load(power2);

    racy_adam(u->out, u->slots[ADAM_M], u->slots[ADAM_V], u->g,
              adam_step(p, power1_now, power2_now), u->n);
    racy_store(power1, power1_now * p[ADAM_BETA1]);
    racy_store(power2, power2_now * p[ADAM_BETA2]);
}

static const char *
check_adam(const float *p)
{
    return p[ADAM_EPS] == 0 ? "eps is 0, must be above 0" : NULL;
}

/* w += d */
static void
apply_add(const struct update *u)
{
    kernel_add(u->out, u->w, u->g, u->n);
}

static void
racy_apply_add(const struct update *u)
{
    racy_add(u->out, u->g, u->n);
}

/* w = d */
static void
apply_assign(const struct update *u)
{
    kernel_assign(u->out, u->g, u->n);
}

static void
racy_apply_assign(const struct update *u)
{
    racy_assign(u->out, u->g, u->n);
}

static const struct optimizer_rule rules[] = {
    {
        .name = "sgd",
        .n_params = 1,
        .params = {LR},
        .apply = apply_sgd,
        .apply_racy = racy_apply_sgd,
    },
    {
        .name = "adagrad",
        .n_params = 3,
        .params = {[ADAGRAD_LR] = LR,
                   [ADAGRAD_START] = {.name = "initial_accumulator",
                                      .def = 0.1f,
                                      .below = HUGE_VALF},
                   [ADAGRAD_EPS] = {.name = "eps", .def = 0, .below = HUGE_VALF}},
        .n_slots = 1,
        .slots = {{.name = "accumulator", .start_param = ADAGRAD_START}},
        .check = check_adagrad,
        .apply = apply_adagrad,
        .apply_racy = racy_apply_adagrad,
    },
    {
        .name = "adam",
        .n_params = 4,
        .params = {[ADAM_LR] = LR,
                   [ADAM_BETA1] = {.name = "beta1", .def = 0.9f, .below = 1},
                   [ADAM_BETA2] = {.name = "beta2", .def = 0.999f, .below = 1},
                   [ADAM_EPS] = {.name = "eps", .def = 1e-8f, .below = HUGE_VALF}},
        .n_slots = 4,
        .slots = {[ADAM_M] = {.name = "m", .start_param = FROM_CONSTANT},
                  [ADAM_V] = {.name = "v", .start_param = FROM_CONSTANT},
                  [ADAM_BETA1_POWER] = {.name = "beta1_power",
                                        .start_param = ADAM_BETA1,
                                        .is_per_slice = true},
                  [ADAM_BETA2_POWER] = {.name = "beta2_power",
                                        .start_param = ADAM_BETA2,
                                        .is_per_slice = true}},
        .check = check_adam,
        .apply = apply_adam,
        .apply_racy = racy_apply_adam,
    },
    {.name = "add", .apply = apply_add, .apply_racy = racy_apply_add},
    {.name = "assign", .apply = apply_assign, .apply_racy = racy_apply_assign},
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

const char *
optimizer_name_at(unsigned index)
{
    return index < N_RULES ? rules[index].name : NULL;
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

    return s->start_param == FROM_CONSTANT ? s->start : o->params[s->start_param];
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

void
optimizer_apply_racy(const struct optimizer *o, float *w, float *const *slots, const void *g,
                     size_t n, uint64_t version)
{
    const struct update u = {
        .params = o->params,
        .out = w,
        .w = w,
        .slots = slots,
        .g = g,
        .n = n,
        .version = version,
    };

    o->rule->apply_racy(&u);
}
