/*
 * rules.c - optimizers with their parameters through the library and a real psd.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "house.h"

TestSuite(rules, .timeout = 120);

static void
zeros(void *arg, unsigned index, float *values, uint64_t n)
{
    uint64_t i;

    (void)arg;
    (void)index;
    for (i = 0; i < n; i++)
        values[i] = 0;
}

static struct dtw_client *
open_worker(struct house *h)
{
    struct dtw_options o;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};

    house_options(h, &o, 0, 1);
    cr_assert_eq(dtw_open(&o, &c, &err), DTW_OK, "%s", err.text);
    return c;
}

/* Push g three times to one element and return what is there. */
static float
push_three(struct dtw_client *c, const float *g)
{
    float value = 0, gradient;
    float *values[] = {&value};
    const float *gradients[] = {&gradient};
    struct dtw_error err = {DTW_OK, ""};
    unsigned i;

    cr_assert_eq(dtw_init(c, zeros, NULL, NULL, &err), DTW_OK, "%s", err.text);
    house_pull(c, values, 0);
    for (i = 0; i < 3; i++) {
        gradient = g[i];
        cr_assert_eq(dtw_step(c, gradients, values, 1, 1, NULL, &err), DTW_OK, "%s", err.text);
    }
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    return value;
}

static float
train(const struct dtw_variable *v)
{
    static const float g[] = {0.5f, 0.25f, -2};
    struct house h;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};
    float value;

    house_open(&h, 1, 32);
    h.consistency = "async";
    c = open_worker(&h);
    cr_assert_eq(dtw_declare(c, v, NULL, &err), DTW_OK, "%s", err.text);
    value = push_three(c, g);
    house_close(&h);
    return value;
}

Test(rules, add_sums_what_is_pushed_and_assign_keeps_the_last)
{
    const struct dtw_variable add = {.name = "a", .optimizer = "add", .lr = -1};
    const struct dtw_variable assign = {.name = "a", .optimizer = "assign", .lr = -1};

    cr_assert_float_eq(train(&add), -1.25f, 0);
    cr_assert_float_eq(train(&assign), -2, 0);
}

/* w -= lr * g / (sqrt(a) + eps) from a = 1; ALGORITHMS section 1 in double precision. */
Test(rules, further_parameters_reach_psd)
{
    const struct dtw_param params[] = {{"initial_accumulator", 1}, {"eps", 0.5f}};
    const struct dtw_variable v = {
        .name = "a", .optimizer = "adagrad", .lr = 0.5f, .params = params, .n_params = 2};
    static const double g[] = {0.5, 0.25, -2};
    double a = 1, w = 0;
    unsigned i;

    for (i = 0; i < 3; i++) {
        a += g[i] * g[i];
        w -= 0.5 * g[i] / (sqrt(a) + 0.5);
    }
    cr_assert_float_eq(train(&v), w, 1e-6);
}

/* Momentum with clip, decay and an exponential rate, as a client declares them. */
Test(rules, extras_change_the_gradient_and_the_rate)
{
    const struct dtw_param params[] = {{"weight_decay", 0.25f},
                                       {"clip_value", 1},
                                       {"exponential.rate", 0.5f},
                                       {"exponential.steps", 1},
                                       {"warmup", 2}};
    const struct dtw_variable v = {
        .name = "a", .optimizer = "momentum", .lr = 0.5f, .params = params, .n_params = 5};
    static const double g[] = {0.5, 0.25, -1}; /* the last one is -2, clipped */
    static const double rate[] = {0.25, 0.25, 0.125};
    double a = 0, w = 0;
    unsigned i;

    for (i = 0; i < 3; i++) {
        a = (double)0.9f * a + g[i] + 0.25 * w;
        w -= rate[i] * a;
    }
    cr_assert_float_eq(train(&v), w, 1e-6);
}

Test(rules, a_parameter_that_the_rule_does_not_have_is_refused_by_psd)
{
    const struct dtw_param params[] = {{"beta1", 1}};
    const struct dtw_variable v = {.name = "a", .lr = 1, .params = params, .n_params = 1};
    const struct dtw_variable rate = {.name = "b", .optimizer = "add", .lr = 1};
    const struct dtw_variable *const wrong[] = {&v, &rate};
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct house h;
        struct dtw_client *c;
        struct dtw_error err = {DTW_OK, ""};

        house_open(&h, 1, 32);
        c = open_worker(&h);
        cr_assert_eq(dtw_declare(c, wrong[i], NULL, &err), DTW_OK, "%s", err.text);
        cr_assert_eq(dtw_init(c, zeros, NULL, NULL, &err), DTW_REFUSED);
        cr_assert(strstr(err.text, "has no parameter"), "%s", err.text);
        dtw_close(c);
        house_close(&h);
    }
}

Test(rules, a_pin_is_checked)
{
    struct house h;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};
    const struct dtw_variable v = {.name = "a", .lr = 1};

    house_open(&h, 1, 32);
    c = open_worker(&h);
    cr_assert_eq(dtw_place(c, "a", 1, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "no ps task 1"), "%s", err.text);
    cr_assert_eq(dtw_place(c, "", 0, &err), DTW_INVALID);
    cr_assert_eq(dtw_place(c, "elsewhere", 0, &err), DTW_OK);
    cr_assert_eq(dtw_declare(c, &v, NULL, &err), DTW_OK);
    cr_assert_eq(dtw_place(c, "a", 0, &err), DTW_INVALID);
    cr_assert_eq(dtw_init(c, zeros, NULL, NULL, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "no variable elsewhere"), "%s", err.text);
    dtw_close(c);
    house_close(&h);
}
