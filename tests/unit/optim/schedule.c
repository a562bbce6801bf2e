/*
 * schedule.c - rates by their steps against the equations of TensorFlow 1.x in double precision (the C
 * library's pow and cos), and what is refused.
 */
#include "psd/optim/schedule.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "psd/optim/optimizer.h"

TestSuite(schedule, .timeout = 120);

#define LR                                                                                         \
    {                                                                                              \
        "lr", .1f                                                                                  \
    }

static struct optimizer
made(const struct optimizer_param *params, unsigned n)
{
    struct optimizer o;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(optimizer_init(&o, "sgd", params, n, &err), DT_OK, "%s", err.text);
    return o;
}

#define MADE(...)                                                                                  \
    made((const struct optimizer_param[]){LR, __VA_ARGS__},                                        \
         sizeof((const struct optimizer_param[]){LR, __VA_ARGS__}) /                               \
             sizeof(struct optimizer_param))

static const uint64_t steps[] = {0,  1,  2,  5,  9,   10,  11,   15,
                                 20, 21, 25, 99, 100, 101, 1000, 1ull << 50};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

typedef double rate_fn(double step);

/* To the last bit of a float32 or the one beside it. */
static void
follows(const struct optimizer *o, rate_fn *rate)
{
    size_t i;

    for (i = 0; i < N_STEPS; i++) {
        double want = rate((double)steps[i]), got = (double)optimizer_rate(o, steps[i]);

        cr_expect_leq(fabs(got - want), 1.2e-7 * fabs(want) + (double)FLT_MIN,
                      "step %llu: %.9g, not %.9g", (unsigned long long)steps[i], got, want);
    }
}

#define BASE ((double).1f)

static double
exponential(double t)
{
    return BASE * pow((double).9f, t / 10);
}

static double
staircase(double t)
{
    return BASE * pow((double).9f, floor(t / 10));
}

static double
inverse_time(double t)
{
    return BASE / (1 + .5 * t / 10);
}

static double
inverse_stairs(double t)
{
    return BASE / (1 + .5 * floor(t / 10));
}

static double
polynomial(double t)
{
    return (BASE - .015625) * pow(1 - fmin(t, 20) / 20, 1.5) + .015625;
}

static double
cycling(double t)
{
    double end = t > 20 ? 20 * ceil(t / 20) : 20;

    return (BASE - (double)1e-4f) * (1 - t / end) + (double)1e-4f;
}

static double
cosine(double t)
{
    return BASE * (.75 * (1 + cos(M_PI * fmin(t, 20) / 20)) / 2 + .25);
}

static double
piecewise(double t)
{
    return t <= 10 ? BASE : t <= 20 ? .0625 : 0;
}

static double
warm_constant(double t)
{
    return BASE * fmin(1, (t + 1) / 20);
}

static double
warm_cosine(double t)
{
    return cosine(t) * fmin(1, (t + 1) / 7);
}

Test(schedule, each_is_that_of_tensorflow)
{
    struct optimizer o = MADE({"exponential.rate", .9f}, {"exponential.steps", 10});

    follows(&o, exponential);
    o = MADE({"exponential.rate", .9f}, {"exponential.steps", 10}, {"exponential.staircase", 1});
    follows(&o, staircase);
    o = MADE({"inverse-time.rate", .5f}, {"inverse-time.steps", 10});
    follows(&o, inverse_time);
    o = MADE({"inverse-time.rate", .5f}, {"inverse-time.steps", 10}, {"inverse-time.staircase", 1});
    follows(&o, inverse_stairs);
    o = MADE({"polynomial.steps", 20}, {"polynomial.end", .015625f}, {"polynomial.power", 1.5f});
    follows(&o, polynomial);
    o = MADE({"polynomial.cycle", 1}, {"polynomial.steps", 20});
    follows(&o, cycling);
    o = MADE({"cosine.steps", 20}, {"cosine.alpha", .25f});
    follows(&o, cosine);
    o = MADE({"piecewise.lr2", 0}, {"piecewise.at1", 10}, {"piecewise.at2", 20},
             {"piecewise.lr1", .0625f});
    follows(&o, piecewise);
}

Test(schedule, warm_up_multiplies)
{
    struct optimizer o = MADE({"warmup", 20});

    follows(&o, warm_constant);
    o = MADE({"warmup", 7}, {"cosine.steps", 20}, {"cosine.alpha", .25f});
    follows(&o, warm_cosine);
    cr_expect_eq(optimizer_rate(&o, 0), (float)(cosine(0) / 7));
}

Test(schedule, the_ends)
{
    struct optimizer o = MADE({"cosine.steps", 20}), p = MADE({"polynomial.steps", 1});

    cr_expect_eq(optimizer_rate(&o, 0), .1f);
    cr_expect_eq(optimizer_rate(&o, 10), .05f);
    cr_expect_eq(optimizer_rate(&o, 20), 0);
    cr_expect_eq(optimizer_rate(&p, 0), .1f);
    cr_expect_eq(optimizer_rate(&p, 1), 1e-4f, "TensorFlow's end_learning_rate");
    o = MADE({"exponential.rate", .5f}, {"exponential.steps", 1});
    cr_expect_eq(optimizer_rate(&o, 3), .0125f);
    cr_expect_eq(optimizer_rate(&o, UINT64_MAX), 0);
}

Test(schedule, an_update_uses_the_rate_of_its_version)
{
    struct optimizer o = MADE({"piecewise.at1", 1}, {"piecewise.lr1", .5f});
    float w = 1, g = 1, racy = 1;
    uint64_t version;

    for (version = 0; version < 4; version++) {
        optimizer_apply(&o, &w, &w, NULL, &g, 1, version);
        optimizer_apply_racy(&o, &racy, NULL, &g, 1, version);
    }
    cr_expect_float_eq(w, 1 - .1 - .1 - .5 - .5, 1e-6);
    cr_expect_eq(w, racy);
}

Test(schedule, another_rate_later)
{
    struct optimizer o = MADE({"inverse-time.rate", .5f}, {"inverse-time.steps", 10});
    struct dt_error err;

    cr_expect_eq(optimizer_check_rate(&o, .4f, &err), DT_OK);
    optimizer_set_rate(&o, .4f);
    cr_expect_float_eq(optimizer_rate(&o, 20), .2, 1e-7);
    cr_expect_eq(optimizer_check_rate(&o, -1, &err), DT_R_BAD_VALUE);
    cr_expect_str_eq(err.text, "sgd: lr is -1, must be finite and at least 0");
    o = MADE({"piecewise.at1", 10}, {"piecewise.lr1", .5f});
    cr_expect_eq(optimizer_check_rate(&o, .4f, &err), DT_R_BAD_VALUE);
    cr_expect_str_eq(err.text, "sgd: its schedule piecewise names its rates itself");
    cr_assert_eq(optimizer_init(&o, "add", NULL, 0, &err), DT_OK);
    cr_expect_eq(optimizer_check_rate(&o, .4f, &err), DT_R_BAD_VALUE);
    cr_expect_str_eq(err.text, "add: has no lr");
    cr_assert_eq(optimizer_init(&o, "ftrl", &(struct optimizer_param)LR, 1, &err), DT_OK);
    cr_expect_eq(optimizer_check_rate(&o, 0, &err), DT_R_BAD_VALUE);
}

static void
refused(const char *text, const char *rule, const struct optimizer_param *params, unsigned n)
{
    struct optimizer o;
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(optimizer_init(&o, rule, params, n, &err), DT_R_BAD_VALUE, "%s", text);
    cr_expect_str_eq(err.text, text);
}

#define REFUSED(text, rule, ...)                                                                   \
    refused(text, rule, (const struct optimizer_param[]){LR, __VA_ARGS__},                         \
            sizeof((const struct optimizer_param[]){LR, __VA_ARGS__}) /                            \
                sizeof(struct optimizer_param))

Test(schedule, refusals)
{
    REFUSED("sgd: exponential.steps is missing", "sgd", {"exponential.rate", .5f});
    REFUSED("sgd: exponential.rate is missing", "sgd", {"exponential.steps", 5});
    REFUSED("sgd: exponential.rate is 0, must be above 0 and at most 1", "sgd",
            {"exponential.rate", 0});
    REFUSED("sgd: exponential.rate is nan, must be above 0 and at most 1", "sgd",
            {"exponential.rate", NAN});
    REFUSED("sgd: exponential.steps is 0, must be a whole number, at least 1 and at most 16777216",
            "sgd", {"exponential.steps", 0});
    REFUSED("sgd: cosine.steps is 2.5, must be a whole number, at least 1 and at most 16777216",
            "sgd", {"cosine.steps", 2.5f});
    REFUSED("sgd: warmup is 0, must be a whole number, at least 1 and at most 16777216", "sgd",
            {"warmup", 0});
    REFUSED("sgd: warmup is given twice", "sgd", {"warmup", 2}, {"warmup", 2});
    REFUSED("sgd: exponential and cosine: a rate has one schedule", "sgd",
            {"exponential.rate", .5f}, {"cosine.steps", 5});
    REFUSED("sgd: cosine.steps is given twice", "sgd", {"cosine.steps", 5}, {"cosine.steps", 5});
    REFUSED("sgd: the schedule cosine has no 'cosine.rate'", "sgd", {"cosine.rate", 5});
    REFUSED("sgd: has no parameter 'sine.steps'", "sgd", {"sine.steps", 5});
    REFUSED("sgd: has no parameter '.steps'", "sgd", {".steps", 5});
    REFUSED("sgd: piecewise: at2 is 10, must be above at1, 10", "sgd", {"piecewise.at1", 10},
            {"piecewise.lr1", 1}, {"piecewise.at2", 10}, {"piecewise.lr2", 1});
    REFUSED("sgd: piecewise: each at has its lr, and they are numbered from 1 on", "sgd",
            {"piecewise.at1", 10});
    REFUSED("sgd: piecewise: each at has its lr, and they are numbered from 1 on", "sgd",
            {"piecewise.at2", 10}, {"piecewise.lr2", 1});
    REFUSED("sgd: the schedule piecewise has no 'piecewise.at9'", "sgd", {"piecewise.at9", 10});
    REFUSED("ftrl: the rate by schedule cosine comes to 0, and it divides by its rate", "ftrl",
            {"cosine.steps", 5});
    REFUSED("ftrl: the rate by schedule piecewise comes to 0, and it divides by its rate", "ftrl",
            {"piecewise.at1", 10}, {"piecewise.lr1", 0});
}

/* 2^-1000 of a rate is 0: ftrl, which divides by it, still gives numbers. */
Test(schedule, ftrl_lives_on_when_its_rate_has_vanished)
{
    const struct optimizer_param params[] = {
        LR, {"exponential.rate", .5f}, {"exponential.steps", 1}};
    float w = 0, n = .1f, z = 0, g = 1;
    float *slots[] = {&n, &z};
    struct optimizer o;

    cr_assert_eq(optimizer_init(&o, "ftrl", params, 3, NULL), DT_OK);
    optimizer_apply(&o, &w, &w, slots, &g, 1, 100000);
    optimizer_apply(&o, &w, &w, slots, &g, 1, 100001);
    cr_expect(isfinite(w) && isfinite(z));
}
