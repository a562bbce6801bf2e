/*
 * rules.c - the update rules as rows of one table. A new rule is a new row and its apply functions; the
 * equations are those of ALGORITHMS section 1 (kernels.h, racy.h). Any thread.
 */
#include "psd/optim/rules.h"

#include <math.h>

#include "psd/optim/kernels.h"
#include "psd/optim/racy.h"

#define LR                                                                                         \
    {                                                                                              \
        .name = "lr", .required = true, .below = HUGE_VALF                                         \
    }

/* w -= lr * g */
static void
apply_sgd(const struct update *u)
{
    kernel_sgd(u->out, u->w, u->g, u->rate, u->n);
}

static void
racy_apply_sgd(const struct update *u)
{
    racy_sgd(u->out, u->g, u->rate, u->n);
}

enum { MOMENTUM_LR, MOMENTUM_MU };

/* a = mu * a + g; w -= lr * a */
static void
apply_momentum(const struct update *u)
{
    kernel_momentum(u->out, u->w, u->slots[0], u->g, u->rate, u->params[MOMENTUM_MU], u->n);
}

static void
racy_apply_momentum(const struct update *u)
{
    racy_momentum(u->out, u->slots[0], u->g, u->rate, u->params[MOMENTUM_MU], u->n);
}

/* a = mu * a + g; w -= lr * g + lr * mu * a */
static void
apply_nesterov(const struct update *u)
{
    kernel_nesterov(u->out, u->w, u->slots[0], u->g, u->rate, u->params[MOMENTUM_MU], u->n);
}

static void
racy_apply_nesterov(const struct update *u)
{
    racy_nesterov(u->out, u->slots[0], u->g, u->rate, u->params[MOMENTUM_MU], u->n);
}

enum { ADAGRAD_LR, ADAGRAD_START, ADAGRAD_EPS };

/* a += g * g; w -= lr * g / (sqrt(a) + eps) */
static void
apply_adagrad(const struct update *u)
{
    const float *p = u->params;

    kernel_adagrad(u->out, u->w, u->slots[0], u->g, u->rate, p[ADAGRAD_EPS], u->n);
}

static void
racy_apply_adagrad(const struct update *u)
{
    const float *p = u->params;

    racy_adagrad(u->out, u->slots[0], u->g, u->rate, p[ADAGRAD_EPS], u->n);
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
adam_step(const struct update *u, float power1, float power2)
{
    const float *p = u->params;

    return (struct kernel_adam_step){
        .alpha = u->rate * sqrtf(1 - power2) / (1 - power1),
        .m_share = 1 - p[ADAM_BETA1],
        .v_share = 1 - p[ADAM_BETA2],
        .eps = p[ADAM_EPS],
    };
}

static void
apply_adam(const struct update *u)
{
    const float *power1 = u->slots[ADAM_BETA1_POWER], *power2 = u->slots[ADAM_BETA2_POWER];

    kernel_adam(u->out, u->w, u->slots[ADAM_M], u->slots[ADAM_V], u->g,
                adam_step(u, *power1, *power2), u->n);
}

static void
advance_adam(const struct update *u)
{
    *u->slots[ADAM_BETA1_POWER] *= u->params[ADAM_BETA1];
    *u->slots[ADAM_BETA2_POWER] *= u->params[ADAM_BETA2];
}

static void
racy_apply_adam(const struct update *u)
{
    const float *power1 = u->slots[ADAM_BETA1_POWER], *power2 = u->slots[ADAM_BETA2_POWER];

    racy_adam(u->out, u->slots[ADAM_M], u->slots[ADAM_V], u->g,
              adam_step(u, racy_load(power1), racy_load(power2)), u->n);
}

static void
racy_advance_adam(const struct update *u)
{
    float *power1 = u->slots[ADAM_BETA1_POWER], *power2 = u->slots[ADAM_BETA2_POWER];

    racy_store(power1, racy_load(power1) * u->params[ADAM_BETA1]);
    racy_store(power2, racy_load(power2) * u->params[ADAM_BETA2]);
}

static const char *
check_adam(const float *p)
{
    return p[ADAM_EPS] == 0 ? "eps is 0, must be above 0" : NULL;
}

enum { RMSPROP_LR, RMSPROP_RHO, RMSPROP_MU, RMSPROP_EPS };
enum { RMSPROP_MS, RMSPROP_MOM, RMSPROP_MG };

static struct kernel_rmsprop_step
rmsprop_step(const struct update *u)
{
    const float *p = u->params;

    return (struct kernel_rmsprop_step){u->rate, 1 - p[RMSPROP_RHO], p[RMSPROP_MU], p[RMSPROP_EPS]};
}

/* ms += (g * g - ms) * (1 - rho); mom = mu * mom + lr * g / sqrt(ms + eps); w -= mom */
static void
apply_rmsprop(const struct update *u)
{
    kernel_rmsprop(u->out, u->w, u->slots[RMSPROP_MS], u->slots[RMSPROP_MOM], u->g, rmsprop_step(u),
                   u->n);
}

static void
racy_apply_rmsprop(const struct update *u)
{
    racy_rmsprop(u->out, u->slots[RMSPROP_MS], u->slots[RMSPROP_MOM], u->g, rmsprop_step(u), u->n);
}

/* The same about the mean: mg += (g - mg) * (1 - rho); the root of max(ms - mg * mg, 0) + eps */
static void
apply_rmsprop_centered(const struct update *u)
{
    kernel_rmsprop_centered(u->out, u->w, u->slots[RMSPROP_MS], u->slots[RMSPROP_MOM],
                            u->slots[RMSPROP_MG], u->g, rmsprop_step(u), u->n);
}

/* The root may become that of eps alone. */
static const char *
check_rmsprop(const float *p)
{
    return p[RMSPROP_EPS] == 0 ? "eps is 0, must be above 0" : NULL;
}

enum { FTRL_LR, FTRL_L1, FTRL_L2, FTRL_START };
enum { FTRL_SQ, FTRL_Z };
#define FTRL_LEAST_RATE 1e-30f

static struct kernel_ftrl_step
ftrl_step(const struct update *u)
{
    /* an exponential decay becomes 0 at last */
    float lr = u->rate > FTRL_LEAST_RATE ? u->rate : FTRL_LEAST_RATE;

    return (struct kernel_ftrl_step){lr, u->params[FTRL_L1], u->params[FTRL_L2]};
}

/* FTRL-proximal; kernels.h. z starts at 0: a first value other than 0 is forgotten at the first update. */
static void
apply_ftrl(const struct update *u)
{
    kernel_ftrl(u->out, u->w, u->slots[FTRL_SQ], u->slots[FTRL_Z], u->g, ftrl_step(u), u->n);
}

static void
racy_apply_ftrl(const struct update *u)
{
    racy_ftrl(u->out, u->slots[FTRL_SQ], u->slots[FTRL_Z], u->g, ftrl_step(u), u->n);
}

static const char *
check_ftrl(const float *p)
{
    return p[FTRL_START] == 0 ? "initial_accumulator is 0, must be above 0" : NULL;
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

#define RMSPROP_PARAMS                                                                             \
    {                                                                                              \
        [RMSPROP_LR] = LR, [RMSPROP_RHO] = {.name = "rho", .def = 0.9f, .below = 1},               \
        [RMSPROP_MU] = {.name = "momentum", .below = 1}, [RMSPROP_EPS] = {                         \
            .name = "eps",                                                                         \
            .def = 1e-10f,                                                                         \
            .below = HUGE_VALF                                                                     \
        }                                                                                          \
    }

static const struct optimizer_rule table[] = {
    {
        .name = "sgd",
        .n_params = 1,
        .params = {LR},
        .apply = apply_sgd,
        .apply_racy = racy_apply_sgd,
    },
    {
        .name = "momentum",
        .n_params = 2,
        .params =
            {[MOMENTUM_LR] = LR, [MOMENTUM_MU] = {.name = "momentum", .def = 0.9f, .below = 1}},
        .n_slots = 1,
        .slots = {{.name = "momentum", .start_param = RULES_FROM_CONSTANT}},
        .apply = apply_momentum,
        .apply_racy = racy_apply_momentum,
    },
    {
        .name = "nesterov",
        .n_params = 2,
        .params =
            {[MOMENTUM_LR] = LR, [MOMENTUM_MU] = {.name = "momentum", .def = 0.9f, .below = 1}},
        .n_slots = 1,
        .slots = {{.name = "momentum", .start_param = RULES_FROM_CONSTANT}},
        .apply = apply_nesterov,
        .apply_racy = racy_apply_nesterov,
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
        .slots = {[ADAM_M] = {.name = "m", .start_param = RULES_FROM_CONSTANT},
                  [ADAM_V] = {.name = "v", .start_param = RULES_FROM_CONSTANT},
                  [ADAM_BETA1_POWER] = {.name = "beta1_power",
                                        .start_param = ADAM_BETA1,
                                        .is_per_slice = true},
                  [ADAM_BETA2_POWER] = {.name = "beta2_power",
                                        .start_param = ADAM_BETA2,
                                        .is_per_slice = true}},
        .check = check_adam,
        .apply = apply_adam,
        .apply_racy = racy_apply_adam,
        .advance = advance_adam,
        .advance_racy = racy_advance_adam,
    },
    {
        .name = "rmsprop",
        .n_params = 4,
        .params = RMSPROP_PARAMS,
        .n_slots = 2,
        .slots = {[RMSPROP_MS] = {.name = "ms", .start_param = RULES_FROM_CONSTANT, .start = 1},
                  [RMSPROP_MOM] = {.name = "momentum", .start_param = RULES_FROM_CONSTANT}},
        .check = check_rmsprop,
        .apply = apply_rmsprop,
        .apply_racy = racy_apply_rmsprop,
    },
    {
        .name = "rmsprop-centered",
        .n_params = 4,
        .params = RMSPROP_PARAMS,
        .n_slots = 3,
        .slots = {[RMSPROP_MS] = {.name = "ms", .start_param = RULES_FROM_CONSTANT, .start = 1},
                  [RMSPROP_MOM] = {.name = "momentum", .start_param = RULES_FROM_CONSTANT},
                  [RMSPROP_MG] = {.name = "mg", .start_param = RULES_FROM_CONSTANT}},
        .check = check_rmsprop,
        .apply = apply_rmsprop_centered,
    },
    {
        .name = "ftrl",
        .positive_rate = true,
        .n_params = 4,
        .params = {[FTRL_LR] = LR,
                   [FTRL_L1] = {.name = "l1", .below = HUGE_VALF},
                   [FTRL_L2] = {.name = "l2", .below = HUGE_VALF},
                   [FTRL_START] = {.name = "initial_accumulator", .def = 0.1f, .below = HUGE_VALF}},
        .n_slots = 2,
        .slots = {[FTRL_SQ] = {.name = "accumulator", .start_param = FTRL_START},
                  [FTRL_Z] = {.name = "linear", .start_param = RULES_FROM_CONSTANT}},
        .check = check_ftrl,
        .apply = apply_ftrl,
        .apply_racy = racy_apply_ftrl,
    },
    {.name = "add", .apply = apply_add, .apply_racy = racy_apply_add},
    /* w += d / (staleness + 1): the staleness is that of the slice at the very update */
    {.name = "add-damped", .apply = apply_add, .is_damped = true},
    {.name = "assign", .apply = apply_assign, .apply_racy = racy_apply_assign},
};

const struct optimizer_rule *
rules_at(unsigned index)
{
    return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}
