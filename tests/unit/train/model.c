/*
 * model.c - gradients against central differences in double, losses of known values, evaluation.
 */
#include "worker/train/model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 13
#define FEATURES 5
#define CLASSES 4

TestSuite(model, .timeout = 120);
TestSuite(softmax, .timeout = 240);
TestSuite(toy, .timeout = 120);

struct softmax_case {
    struct dataset data;
    float kernel[FEATURES * CLASSES];
    float bias[CLASSES];
    const float *values[2];
};

/* Plain reproducible numbers in [-1, 1). */
static float
number(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static void
case_make(struct softmax_case *c)
{
    unsigned state = 12345;

    memset(c, 0, sizeof(*c));
    c->data = (struct dataset){.n_rows = ROWS, .n_features = FEATURES, .n_classes = CLASSES};
    c->data.x = calloc(ROWS * FEATURES, sizeof(float));
    c->data.y = calloc(ROWS, sizeof(uint32_t));
    for (int i = 0; i < ROWS * FEATURES; i++)
        c->data.x[i] = number(&state);
    for (int i = 0; i < ROWS; i++)
        c->data.y[i] = (uint32_t)(i * 7 % CLASSES);
    for (int i = 0; i < FEATURES * CLASSES; i++)
        c->kernel[i] = number(&state);
    for (int i = 0; i < CLASSES; i++)
        c->bias[i] = number(&state);
    c->values[0] = c->kernel;
    c->values[1] = c->bias;
}

static struct model *
softmax_make(uint32_t max_batch)
{
    struct model *m;
    struct dt_error err;

    model_set_threads(1);
    cr_assert_eq(model_create("softmax", FEATURES, CLASSES, max_batch, 1, &m, &err), DT_OK);
    return m;
}

/* The same loss in double, written plainly. `at` of variable `variable` is moved by `by`. */
static double
reference_loss(const struct softmax_case *c, const uint64_t *rows, int n, int variable, int at,
               double by)
{
    double loss = 0;

    for (int i = 0; i < n; i++) {
        double sum = 0;
        double z[CLASSES];
        for (int j = 0; j < CLASSES; j++) {
            z[j] = (double)c->bias[j] + (variable == 1 && at == j ? by : 0);
            for (int f = 0; f < FEATURES; f++) {
                double w = (double)c->kernel[f * CLASSES + j];
                if (variable == 0 && at == f * CLASSES + j)
                    w += by;
                z[j] += w * (double)c->data.x[rows[i] * FEATURES + (uint64_t)f];
            }
            sum += exp(z[j]);
        }
        loss += log(sum) - z[c->data.y[rows[i]]];
    }
    return loss / n;
}

Test(softmax, gradient_is_that_of_central_differences)
{
    static const uint64_t rows[] = {3, 0, 12, 7, 7, 5, 1};
    struct softmax_case c;
    float dk[FEATURES * CLASSES];
    float db[CLASSES];
    float *gradients[2] = {dk, db};
    const double h = 1e-5;

    case_make(&c);
    struct model *m = softmax_make(7);
    double loss = model_gradient(m, &c.data, rows, 7, c.values, gradients);
    cr_expect_float_eq(loss, reference_loss(&c, rows, 7, -1, 0, 0), 1e-6);
    cr_expect_float_eq(model_gradient(m, &c.data, rows, 7, c.values, NULL), loss, 1e-15);
    for (int v = 0; v < 2; v++) {
        for (int i = 0; i < (v ? CLASSES : FEATURES * CLASSES); i++) {
            double d =
                (reference_loss(&c, rows, 7, v, i, h) - reference_loss(&c, rows, 7, v, i, -h)) /
                (2 * h);
            cr_expect_float_eq((double)gradients[v][i], d, 1e-6, "variable %d element %d", v, i);
        }
    }
    model_destroy(m);
    dataset_deinit(&c.data);
}

Test(softmax, gradient_of_a_batch_is_the_weighted_mean_of_its_parts)
{
    uint64_t rows[ROWS];
    struct softmax_case c;
    float whole[FEATURES * CLASSES], first[FEATURES * CLASSES], second[FEATURES * CLASSES];
    float bias[CLASSES];

    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = i;
    case_make(&c);
    struct model *m = softmax_make(ROWS);
    double all = model_gradient(m, &c.data, rows, ROWS, c.values, (float *[]){whole, bias});
    double a = model_gradient(m, &c.data, rows, 9, c.values, (float *[]){first, bias});
    double b = model_gradient(m, &c.data, rows + 9, 4, c.values, (float *[]){second, bias});
    cr_expect_float_eq(all, (9 * a + 4 * b) / 13, 1e-7);
    for (int i = 0; i < FEATURES * CLASSES; i++)
        cr_expect_float_eq(whole[i], (9 * first[i] + 4 * second[i]) / 13, 1e-6f);
    model_destroy(m);
    dataset_deinit(&c.data);
}

Test(softmax, batch_larger_than_the_scratch_memory)
{
    /* 3 million features: the scratch memory holds 5 rows of a batch of 12 */
    enum { WIDE = 3000000, N = 12 };
    struct dataset d = {.n_rows = N, .n_features = WIDE, .n_classes = 2};
    struct model *m;
    uint64_t rows[N];
    float bias[2] = {0, 0}, db[2];

    d.x = calloc((size_t)N * WIDE, sizeof(float));
    d.y = calloc(N, sizeof(uint32_t));
    float *w = calloc((size_t)WIDE * 2, sizeof(float));
    float *dw = calloc((size_t)WIDE * 2, sizeof(float));
    for (uint64_t i = 0; i < N; i++) {
        rows[i] = i;
        d.x[i * WIDE + i] = 1; /* row i has feature i alone; all labels are 0 */
    }
    model_set_threads(1);
    cr_assert_eq(model_create("softmax", WIDE, 2, N, 1, &m, NULL), DT_OK);
    double loss = model_gradient(m, &d, rows, N, (const float *[]){w, bias}, (float *[]){dw, db});
    cr_expect_float_eq(loss, log(2), 1e-12);
    cr_expect_float_eq(db[0], -.5f, 1e-6f);
    cr_expect_float_eq(db[1], .5f, 1e-6f);
    for (int i = 0; i < N; i++)
        cr_expect_float_eq(dw[2 * i], -.5f / N, 1e-7f, "row %d", i);
    cr_expect_eq(dw[2 * N], 0.0f);
    model_destroy(m);
    free(w);
    free(dw);
    dataset_deinit(&d);
}

Test(softmax, loss_at_zeros_is_log_of_classes)
{
    struct softmax_case c;
    uint64_t rows[3] = {1, 2, 3};
    struct model_score score;

    case_make(&c);
    struct model *m = softmax_make(4);
    for (uint32_t v = 0; v < model_n_variables(m); v++)
        model_init(m, v, v ? c.bias : c.kernel);
    cr_expect_float_eq(model_gradient(m, &c.data, rows, 3, c.values, NULL), log(CLASSES), 1e-12);
    model_evaluate(m, &c.data, c.values, &score);
    cr_expect_float_eq(score.loss, log(CLASSES), 1e-12);
    cr_expect_float_eq(score.accuracy, 4.0 / ROWS, 1e-12); /* ties go to class 0: rows 0 4 8 12 */
    model_destroy(m);
    dataset_deinit(&c.data);
}

Test(softmax, large_logits_do_not_overflow_and_nan_shows)
{
    struct softmax_case c;
    uint64_t rows[1] = {0};
    float dk[FEATURES * CLASSES], db[CLASSES];

    case_make(&c);
    struct model *m = softmax_make(1);
    memset(c.kernel, 0, sizeof(c.kernel));
    c.bias[0] = 1e30f;
    c.bias[1] = -1e30f;
    double loss = model_gradient(m, &c.data, rows, 1, c.values, (float *[]){dk, db});
    cr_expect_float_eq(loss, 0, 1e-12); /* row 0 has label 0 */
    for (int i = 0; i < CLASSES; i++)
        cr_expect(isfinite(db[i]));
    c.bias[2] = NAN;
    cr_expect(isnan(model_gradient(m, &c.data, rows, 1, c.values, (float *[]){dk, db})));
    model_destroy(m);
    dataset_deinit(&c.data);
}

Test(softmax, evaluation_counts_right_answers)
{
    struct softmax_case c;
    struct model_score score;
    uint64_t rows[ROWS];

    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = i;
    case_make(&c);
    struct model *m = softmax_make(4);
    memset(c.kernel, 0, sizeof(c.kernel));
    memset(c.bias, 0, sizeof(c.bias));
    c.bias[3] = 1; /* always says 3, right for rows 1, 5, 9 */
    model_evaluate(m, &c.data, c.values, &score);
    cr_expect_float_eq(score.accuracy, 3.0 / ROWS, 1e-12);
    cr_expect_float_eq(score.loss, model_gradient(m, &c.data, rows, ROWS, c.values, NULL), 1e-9);
    c.data.n_rows = 0;
    model_evaluate(m, &c.data, c.values, &score);
    cr_expect(isnan(score.loss) && isnan(score.accuracy));
    model_destroy(m);
    dataset_deinit(&c.data);
}

Test(softmax, refuses_data_of_another_shape)
{
    struct softmax_case c;
    struct dt_error err;

    case_make(&c);
    struct model *m = softmax_make(4);
    cr_expect_eq(model_check_data(m, &c.data, &err), DT_OK);
    c.data.n_features = 6;
    cr_expect_eq(model_check_data(m, &c.data, &err), DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "6 features"), "%s", err.text);
    c.data.n_features = FEATURES;
    c.data.n_classes = 9;
    cr_expect_eq(model_check_data(m, &c.data, &err), DT_E_DATA);
    model_destroy(m);
    dataset_deinit(&c.data);
}

Test(model, names_and_shapes)
{
    struct model *m = softmax_make(4);

    cr_expect_str_eq(model_spec(m), "softmax");
    cr_expect(model_needs_data(m));
    cr_assert_eq(model_n_variables(m), 2);
    cr_expect_str_eq(model_variable(m, 0)->name, "dense/kernel");
    cr_expect_eq(model_variable(m, 0)->elements, FEATURES * CLASSES);
    cr_expect_eq(model_variable(m, 0)->shape[0], FEATURES);
    cr_expect_eq(model_variable(m, 0)->shape[1], CLASSES);
    cr_expect_str_eq(model_variable(m, 1)->name, "dense/bias");
    cr_expect_str_eq(model_variable(m, 1)->init, "zeros");
    cr_expect_null(model_variable(m, 2));
    cr_expect_eq(model_threads(), 1);
    cr_expect_gt(strlen(model_cpu_kernel()), 0);
    model_destroy(m);
}

Test(model, unknown_and_impossible_are_refused)
{
    struct model *m;
    struct dt_error err;

    cr_expect_eq(model_create("transformer", 4, 2, 1, 0, &m, &err), DT_E_USAGE);
    cr_expect_not_null(strstr(err.text, "toy, linear, softmax"));
    cr_expect_null(m);
    cr_expect_eq(model_create("softmax", 0, 0, 1, 0, &m, &err), DT_E_USAGE);
    cr_expect_eq(model_create("softmax", 4000000000u, 10, 1, 0, &m, &err), DT_E_DATA);
    model_destroy(NULL);
}

/* 1 - 2e-4 of the distance is left after a step: c_10 = 100 (1 - (1 - 2e-4)^10) = .1998201 */
Test(toy, ten_steps_are_those_of_the_guide)
{
    struct model *m;
    float a[2] = {9, 9}, b[2] = {9, 9}, da[2], db[2];
    const float *values[2] = {a, b};
    struct model_score score;

    cr_assert_eq(model_create("toy", 0, 0, 10, 0, &m, NULL), DT_OK);
    cr_expect(!model_needs_data(m));
    cr_expect_eq(model_check_data(m, NULL, NULL), DT_OK);
    model_init(m, 0, a);
    model_init(m, 1, b);
    for (int step = 0; step < 10; step++) {
        double loss = model_gradient(m, NULL, NULL, 10, values, (float *[]){da, db});
        if (step == 0)
            cr_expect_eq(loss, 10000.0);
        for (int i = 0; i < 2; i++) {
            a[i] -= 1e-4f * da[i];
            b[i] -= 1e-4f * db[i];
        }
    }
    cr_expect_float_eq(a[0] + b[0], .1998201f, 1e-6f);
    cr_expect_float_eq(a[1] + b[1], .1998201f, 1e-6f);
    model_evaluate(m, NULL, values, &score);
    cr_expect_float_eq(score.loss, (100 - .1998201) * (100 - .1998201), 1e-3);
    cr_expect(isnan(score.accuracy));
    model_destroy(m);
}
