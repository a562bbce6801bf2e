/*
 * golden.c - the rules against numbers of TensorFlow: the tables of ALGORITHMS section 1, and its own
 * test of adagrad.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "state.h"

TestSuite(golden, .timeout = 120);

static const float w0[3] = {1, -2, .5f};
static const float gradients[3][3] = {{.1f, -.2f, 0}, {.3f, .1f, -.4f}, {-.2f, .5f, .05f}};

/* lr .1, all else as by default */
static void
follows(const char *rule, const double want[3][3])
{
    const struct optimizer_param lr[] = {{"lr", .1f}, {NULL, 0}};
    struct state s = state_create(rule, lr, w0, 3);
    int step, i;

    for (step = 0; step < 3; step++) {
        state_apply(&s, gradients[step]);
        for (i = 0; i < 3; i++)
            cr_expect_leq(fabs((double)s.w[i] - want[step][i]), 1e-6 * fabs(want[step][i]),
                          "%s after %d, w[%d] = %.9g", rule, step + 1, i, (double)s.w[i]);
    }
    state_destroy(&s);
}

Test(golden, sgd)
{
    follows("sgd", (const double[3][3]){{.99000001, -1.98000002, .5},
                                        {.960000038, -1.99000001, .540000021},
                                        {.980000019, -2.03999996, .535000026}});
}

Test(golden, adagrad)
{
    follows("adagrad", (const double[3][3]){{.969848871, -1.94654775, .5},
                                            {.902766824, -1.97236764, .578446448},
                                            {.943591654, -2.0514245, .568687439}});
}

Test(golden, adam)
{
    follows("adam", (const double[3][3]){{.900000334, -1.9000001, .5},
                                         {.808222651, -1.87336648, .574413359},
                                         {.782432497, -1.92329156, .623562932}});
}

Test(golden, momentum)
{
    follows("momentum", (const double[3][3]){{.99000001, -1.98000002, .5},
                                             {.951000035, -1.972, .540000021},
                                             {.935900033, -2.01480007, .57100004}});
}

Test(golden, rmsprop)
{
    follows("rmsprop", (const double[3][3]){{.989464939, -1.97896481, .5},
                                            {.956333458, -1.99004447, .544011891},
                                            {.979553044, -2.04746866, .538213789}});
}

Test(golden, ftrl)
{
    follows("ftrl", (const double[3][3]){{.0163862742, -.256239265, 0},
                                         {-.0506957658, -.282059163, .0784464478},
                                         {-.00987093896, -.361116111, .0686874464}});
}

/* TensorFlow's own test of ftrl: lr 3, from 0, three steps of .1 and .2. */
Test(golden, ftrl_of_tensorflows_own_test)
{
    const struct optimizer_param lr[] = {{"lr", 3}, {NULL, 0}};
    const float w[2] = {0, 0}, g[2] = {.1f, .2f};
    struct state s = state_create("ftrl", lr, w, 2);
    int step;

    for (step = 0; step < 3; step++)
        state_apply(&s, g);
    cr_expect_float_eq(s.w[0], -2.60260963, 3e-6);
    cr_expect_float_eq(s.w[1], -4.29698515, 5e-6);
    state_destroy(&s);
}

/* The accumulator grows: three steps of .1 from 1 with a rate of 3. */
Test(golden, adagrad_of_tensorflows_own_test)
{
    const struct optimizer_param lr[] = {{"lr", 3}, {NULL, 0}};
    const float w[2] = {1, 2}, g[2] = {.1f, .1f};
    struct state s = state_create("adagrad", lr, w, 2);
    int step;

    for (step = 0; step < 3; step++)
        state_apply(&s, g);
    cr_expect_float_eq(s.w[0], -1.60260987, 1.7e-6, "%.9g", (double)s.w[0]);
    cr_expect_float_eq(s.w[1], -.60260987, 1.7e-6, "%.9g", (double)s.w[1]);
    cr_expect_float_eq(s.slots[0][0], .13, 1e-7);
    state_destroy(&s);
}

/* Beta powers are used before they are advanced: the first step is lr whatever the gradient's size. */
Test(golden, adams_first_step_is_the_rate)
{
    const struct optimizer_param lr[] = {{"lr", .25f}, {NULL, 0}};
    const float w[3] = {0, 0, 0}, g[3] = {1e-3f, 1, -1000};
    struct state s = state_create("adam", lr, w, 3);

    cr_expect_eq(s.slots[2][0], .9f);
    cr_expect_eq(s.slots[3][0], .999f);
    state_apply(&s, g);
    cr_expect_float_eq(s.w[0], -.25 / (1 + 1e-8 / (1e-3 * sqrt(1e-3))), 3e-7, "eps counts");
    cr_expect_float_eq(s.w[1], -.25, 3e-7);
    cr_expect_float_eq(s.w[2], .25, 3e-7);
    cr_expect_eq(s.slots[2][0], .9f * .9f);
    cr_expect_eq(s.slots[3][0], .999f * .999f);
    state_destroy(&s);
}

/* The product vanishes without harm: the rate becomes lr itself. */
Test(golden, adams_powers_run_out)
{
    const struct optimizer_param params[] = {{"lr", .5f}, {"beta1", 0}, {"beta2", .01f}, {NULL, 0}};
    const float w = 0, g = 2;
    struct state s = state_create("adam", params, &w, 1);
    int step;

    for (step = 1; step <= 100; step++) {
        state_apply(&s, &g);
        cr_assert_float_eq(s.w[0], -.5 * step, 1e-5 * step);
    }
    cr_expect_eq(s.slots[3][0], 0);
    state_destroy(&s);
}

Test(golden, adagrad_with_eps)
{
    const struct optimizer_param params[] = {
        {"lr", 1}, {"eps", .5f}, {"initial_accumulator", 0}, {NULL, 0}};
    const float w[2] = {1, 1}, g[2] = {3, 0};
    struct state s = state_create("adagrad", params, w, 2);

    state_apply(&s, g);
    cr_expect_float_eq(s.w[0], 1 - 3 / 3.5, 1e-6);
    cr_expect_eq(s.w[1], 1, "no gradient yet: 0 / eps");
    state_destroy(&s);
}

Test(golden, add_and_assign)
{
    const struct optimizer_param none[] = {{NULL, 0}};
    struct state add = state_create("add", none, w0, 3),
                 assign = state_create("assign", none, w0, 3);
    int i;

    state_apply(&add, gradients[1]);
    state_apply(&assign, gradients[1]);
    for (i = 0; i < 3; i++)
        cr_expect_eq(add.w[i], w0[i] + gradients[1][i]);
    cr_expect_eq(memcmp(assign.w, gradients[1], sizeof(gradients[1])), 0);
    state_destroy(&add);
    state_destroy(&assign);
}
