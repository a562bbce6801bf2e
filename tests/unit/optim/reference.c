/*
 * reference.c - one step of each rule against the equation in double precision with the same float32
 * hyper-parameters; all sizes, unaligned gradients, values in place and in a fresh block.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "state.h"

TestSuite(reference, .timeout = 240);

/* The change of w[i] in the first step. */
typedef double first_change(double w, double g);

static void
agrees(const struct state *s, const float *w, const float *g, const float *out,
       first_change *change)
{
    size_t i;

    for (i = 0; i < s->n; i++) {
        double dw = change((double)w[i], (double)g[i]), want = (double)w[i] + dw;

        cr_assert_leq(fabs((double)out[i] - want), 1e-6 * fmax(fabs((double)w[i]), fabs(dw)),
                      "%zu of %zu: %.9g, not %.9g", i, s->n, (double)out[i], want);
    }
}

static void
one_step(const char *rule, const struct optimizer_param *params, size_t n, unsigned offset,
         first_change *change)
{
    float *w = samples(1 + offset, n), *x = samples(50 + offset, n), *out = samples(9, n), *kept;
    void *base;
    const void *g = unaligned_copy(x, n, offset, &base);
    struct state fresh = state_create(rule, params, w, n), s = state_create(rule, params, w, n);

    kept = fresh.w;
    optimizer_apply(&fresh.optimizer, out, fresh.w, fresh.slots, g, n, 0);
    state_apply(&s, g);
    cr_assert_eq(memcmp(kept, w, n * sizeof(*w)), 0, "the old values are read only");
    cr_assert_eq(memcmp(out, s.w, n * sizeof(*w)), 0);
    agrees(&s, w, x, out, change);
    state_destroy(&fresh);
    state_destroy(&s);
    free(w);
    free(x);
    free(out);
    free(base);
}

static void
each_size(const char *rule, const struct optimizer_param *params, first_change *change)
{
    unsigned offset;
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        for (offset = 0; offset < 4; offset++)
            one_step(rule, params, sample_sizes[i], offset, change);
    }
}

static double
change_sgd(double w, double g)
{
    (void)w;
    return -(double)0.1f * g;
}

static double
change_adagrad(double w, double g)
{
    (void)w;
    return -(double)0.1f * g / sqrt((double)0.1f + g * g);
}

static double
change_adagrad_eps(double w, double g)
{
    (void)w;
    return -(double)0.1f * g / (sqrt((double)0.25f + g * g) + (double)1e-3f);
}

static double
change_adam(double w, double g)
{
    double b1 = (double)0.9f, b2 = (double)0.999f, alpha = (double)0.1f * sqrt(1 - b2) / (1 - b1);

    (void)w;
    return -alpha * (g * (1 - b1)) / (sqrt(g * g * (1 - b2)) + (double)1e-8f);
}

static double
change_nesterov(double w, double g)
{
    double lr = (double)0.1f, mu = (double)0.8f;

    (void)w;
    return -(lr * g + lr * mu * g);
}

static double
change_rmsprop(double w, double g)
{
    double ms = 1 + (g * g - 1) * (1 - (double)0.9f);

    (void)w;
    return -(double)0.1f * g / sqrt(ms + (double)1e-10f);
}

static double
change_rmsprop_centered(double w, double g)
{
    double share = 1 - (double)0.9f, ms = 1 + (g * g - 1) * share, mg = g * share;

    (void)w;
    return -(double)0.1f * g / sqrt(ms - mg * mg + (double)1e-10f);
}

static double
change_ftrl(double w, double g)
{
    double lr = (double)0.1f, l2 = (double)0.5f, n = (double)0.1f + g * g;
    double z = g - (sqrt(n) - sqrt((double)0.1f)) / lr * w;

    return -z / (sqrt(n) / lr + 2 * l2) - w;
}

static double
change_add(double w, double g)
{
    (void)w;
    return g;
}

static double
change_assign(double w, double g)
{
    return g - w;
}

Test(reference, sgd)
{
    each_size("sgd", (const struct optimizer_param[]){{"lr", .1f}, {NULL, 0}}, change_sgd);
}

/* The first step of momentum is one of sgd. */
Test(reference, momentum)
{
    each_size("momentum", (const struct optimizer_param[]){{"lr", .1f}, {NULL, 0}}, change_sgd);
}

Test(reference, nesterov)
{
    const struct optimizer_param params[] = {{"lr", .1f}, {"momentum", .8f}, {NULL, 0}};

    each_size("nesterov", params, change_nesterov);
}

Test(reference, rmsprop)
{
    each_size("rmsprop", (const struct optimizer_param[]){{"lr", .1f}, {NULL, 0}}, change_rmsprop);
}

Test(reference, rmsprop_centered)
{
    each_size("rmsprop-centered", (const struct optimizer_param[]){{"lr", .1f}, {NULL, 0}},
              change_rmsprop_centered);
}

Test(reference, ftrl)
{
    const struct optimizer_param params[] = {{"lr", .1f}, {"l2", .5f}, {NULL, 0}};

    each_size("ftrl", params, change_ftrl);
}

/* Up to l1 the value is 0, beyond it what is left counts. */
Test(reference, l1_of_ftrl)
{
    const struct optimizer_param params[] = {{"lr", .5f}, {"l1", .25f}, {NULL, 0}};
    const float w[4] = {0}, g[4] = {.25f, -.25f, .5f, -.75f};
    struct state s = state_create("ftrl", params, w, 4);

    state_apply(&s, g);
    cr_assert(s.w[0] == 0 && s.w[1] == 0);
    cr_assert_float_eq(s.w[2], -.25 * .5 / sqrt((double).1f + .25), 1e-7);
    cr_assert_float_eq(s.w[3], .5 * .5 / sqrt((double).1f + .5625), 1e-7);
    state_destroy(&s);
}

Test(reference, adagrad)
{
    each_size("adagrad", (const struct optimizer_param[]){{"lr", .1f}, {NULL, 0}}, change_adagrad);
}

Test(reference, adagrad_with_eps)
{
    const struct optimizer_param params[] = {
        {"eps", 1e-3f}, {"lr", .1f}, {"initial_accumulator", .25f}, {NULL, 0}};

    each_size("adagrad", params, change_adagrad_eps);
}

Test(reference, adam)
{
    each_size("adam", (const struct optimizer_param[]){{"lr", .1f}, {NULL, 0}}, change_adam);
}

Test(reference, add)
{
    each_size("add", (const struct optimizer_param[]){{NULL, 0}}, change_add);
}

Test(reference, assign)
{
    each_size("assign", (const struct optimizer_param[]){{NULL, 0}}, change_assign);
}

/* Many steps: the slots are carried. By norm, as ALGORITHMS asks when two runs are compared. */
Test(reference, a_hundred_steps_of_adam)
{
    enum { N = 1003 };
    const struct optimizer_param params[] = {{"lr", .01f}, {NULL, 0}};
    double b1 = (double)0.9f, b2 = (double)0.999f, m[N] = {0}, v[N] = {0}, w[N], off = 0, norm = 0;
    float *w0 = samples(3, N);
    struct state s = state_create("adam", params, w0, N);
    int step, i;

    for (i = 0; i < N; i++)
        w[i] = (double)w0[i];
    for (step = 1; step <= 100; step++) {
        double alpha = (double)0.01f * sqrt(1 - pow(b2, step)) / (1 - pow(b1, step));
        float *g = samples(100 + (unsigned)step, N);

        state_apply(&s, g);
        for (i = 0; i < N; i++) {
            m[i] += ((double)g[i] - m[i]) * (1 - b1);
            v[i] += ((double)g[i] * (double)g[i] - v[i]) * (1 - b2);
            w[i] -= alpha * m[i] / (sqrt(v[i]) + (double)1e-8f);
        }
        free(g);
    }
    for (i = 0; i < N; i++) {
        off += ((double)s.w[i] - w[i]) * ((double)s.w[i] - w[i]);
        norm += w[i] * w[i];
    }
    cr_expect_leq(sqrt(off), 1e-5 * sqrt(norm), "off by %g of %g", sqrt(off), sqrt(norm));
    state_destroy(&s);
    free(w0);
}
