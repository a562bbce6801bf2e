/*
 * optimizer.c - the table of rules: golden values, and every refusal.
 */
#include "psd/optim/optimizer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"

TestSuite(optimizer, .timeout = 30);

static struct optimizer
sgd(float lr)
{
    struct optimizer_param p = {"lr", lr};
    struct optimizer o;
    struct dt_error err;

    cr_assert_eq(optimizer_init(&o, "sgd", &p, 1, &err), DT_OK, "%s", err.text);
    return o;
}

/* ALGORITHMS section 1: w0 = [1, -2, .5], three gradients, lr .1. */
Test(optimizer, sgd_golden)
{
    static const float g[3][3] = {{.1f, -.2f, 0}, {.3f, .1f, -.4f}, {-.2f, .5f, .05f}};
    static const double want[3][3] = {{.99000001, -1.98000002, .5},
                                      {.960000038, -1.99000001, .540000021},
                                      {.980000019, -2.03999996, .535000026}};
    struct optimizer o = sgd(.1f);
    float w[3] = {1, -2, .5f};
    int step, i;

    for (step = 0; step < 3; step++) {
        optimizer_apply(&o, w, w, NULL, g[step], 3, (uint64_t)step);
        for (i = 0; i < 3; i++)
            cr_assert_leq(fabs((double)w[i] - want[step][i]), 1e-6 * fabs(want[step][i]),
                          "step %d, w[%d] = %.9g", step, i, (double)w[i]);
    }
}

Test(optimizer, sgd_out_of_place_with_an_unaligned_gradient)
{
    enum { N = 1001 };
    struct optimizer o = sgd(.25f);
    float *w = samples(1, N), *x = samples(2, N), *kept = samples(1, N), out[N];
    void *base;
    const void *g = unaligned_copy(x, N, 3, &base);
    int i;

    optimizer_apply(&o, out, w, NULL, g, N, 0);
    cr_assert_eq(memcmp(w, kept, N * sizeof(*w)), 0, "w is not changed");
    for (i = 0; i < N; i++)
        cr_assert_eq(out[i], (float)((double)w[i] - (double)(.25f * x[i])));
    free(w);
    free(x);
    free(kept);
    free(base);
}

Test(optimizer, sgd_has_no_slots)
{
    struct optimizer o = sgd(.1f);

    cr_assert_eq(optimizer_n_slots(&o), 0);
}

Test(optimizer, a_rate_of_zero_is_allowed)
{
    struct optimizer o = sgd(0);
    float w = 3, g = 1e30f;

    optimizer_apply(&o, &w, &w, NULL, &g, 1, 0);
    cr_assert_eq(w, 3);
}

static void
refused(const char *text, const char *rule, const struct optimizer_param *params, unsigned n)
{
    struct optimizer o, kept;
    struct dt_error err;

    memset(&o, 0x5a, sizeof(o));
    kept = o;
    cr_expect_eq(optimizer_init(&o, rule, params, n, &err), DT_R_BAD_VALUE);
    cr_expect_str_eq(err.text, text);
    cr_expect_eq(memcmp(&o, &kept, sizeof(o)), 0, "a refusal changes nothing");
    cr_expect_eq(optimizer_init(&o, rule, params, n, NULL), DT_R_BAD_VALUE);
}

Test(optimizer, refusals)
{
    const struct optimizer_param lr = {"lr", .1f}, negative = {"lr", -.5f}, nan = {"lr", NAN},
                                 inf = {"lr", INFINITY};
    const struct optimizer_param twice[] = {{"lr", .1f}, {"lr", .2f}};
    const struct optimizer_param foreign[] = {{"lr", .1f}, {"mu", .9f}};

    refused("unknown optimizer 'sgdd'; known are: sgd", "sgdd", &lr, 1);
    refused("unknown optimizer ''; known are: sgd", "", &lr, 1);
    refused("sgd: parameter lr is missing", "sgd", NULL, 0);
    refused("sgd: has no parameter 'mu'", "sgd", foreign, 2);
    refused("sgd: lr is given twice", "sgd", twice, 2);
    refused("sgd: lr is -0.5, must be finite and at least 0", "sgd", &negative, 1);
    refused("sgd: lr is inf, must be finite and at least 0", "sgd", &inf, 1);
    refused("sgd: lr is nan, must be finite and at least 0", "sgd", &nan, 1);
}

Test(optimizer, long_foreign_names_are_cut)
{
    struct optimizer_param p = {NULL, 1};
    struct optimizer o;
    struct dt_error err;
    char name[2000];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    p.name = name;
    cr_assert_eq(optimizer_init(&o, "sgd", &p, 1, &err), DT_R_BAD_VALUE);
    cr_assert_lt(strlen(err.text), 100);
    cr_assert_eq(optimizer_init(&o, name, NULL, 0, &err), DT_R_BAD_VALUE);
    cr_assert_lt(strlen(err.text), 120);
}
