/*
 * linear.c - least squares: gradients against closed forms, classes as numbers, data that do not fit.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/train/model.h"

TestSuite(linear, .timeout = 240);

/* y = 2 x0 - x1 + .5 */
static float x[] = {0, 0, 1, 0, 0, 1, 1, 1, 2, -1};
static float t[] = {.5f, 2.5f, -.5f, 1.5f, 5.5f};
static uint32_t y[] = {0, 1, 2, 3, 4};
static const uint64_t rows[] = {0, 1, 2, 3, 4};

static struct dataset
data_make(bool numbers)
{
    return (struct dataset){.n_rows = 5,
                            .n_features = 2,
                            .n_classes = numbers ? 1 : 5,
                            .x = x,
                            .t = numbers ? t : NULL,
                            .y = numbers ? NULL : y};
}

static struct model *
linear_make(uint32_t max_batch)
{
    struct model *m;

    model_set_threads(1);
    cr_assert_eq(model_create("linear", 2, 1, max_batch, 1, &m, NULL), DT_OK);
    return m;
}

/* By hand: e = p - y = -.5 -2.5 .5 -1.5 -5.5 at zeros; loss = sum e^2 / 10; db = mean e. */
Test(linear, loss_and_gradient_at_zeros)
{
    struct dataset d = data_make(true);
    struct model *m = linear_make(5);
    float w[2] = {9, 9}, b[1] = {9}, dw[2], db[1];
    const float *values[] = {w, b};

    model_init(m, 0, w);
    model_init(m, 1, b);
    double loss = model_gradient(m, &d, rows, 5, values, (float *[]){dw, db});
    cr_expect_float_eq(loss, (.25 + 6.25 + .25 + 2.25 + 30.25) / 10, 1e-7);
    cr_expect_float_eq(db[0], -9.5f / 5, 1e-6f);
    cr_expect_float_eq(dw[0], (-2.5f - 1.5f - 11) / 5, 1e-6f);
    cr_expect_float_eq(dw[1], (.5f - 1.5f + 5.5f) / 5, 1e-6f);
    cr_expect_float_eq(model_gradient(m, &d, rows, 5, values, NULL), loss, 1e-15);
    model_destroy(m);
}

static double
reference_loss(const double *w, double b)
{
    double loss = 0;

    for (int i = 0; i < 5; i++) {
        double e = w[0] * (double)x[2 * i] + w[1] * (double)x[2 * i + 1] + b - (double)t[i];
        loss += e * e / 2;
    }
    return loss / 5;
}

Test(linear, gradient_is_that_of_central_differences)
{
    struct dataset d = data_make(true);
    struct model *m = linear_make(5);
    float w[2] = {.3f, -.7f}, b[1] = {.2f}, dw[2], db[1];
    const double h = 1e-5;

    model_gradient(m, &d, rows, 5, (const float *[]){w, b}, (float *[]){dw, db});
    for (int i = 0; i < 3; i++) {
        double up[3] = {(double)w[0], (double)w[1], (double)b[0]};
        double down[3] = {(double)w[0], (double)w[1], (double)b[0]};
        up[i] += h;
        down[i] -= h;
        double g = (reference_loss(up, up[2]) - reference_loss(down, down[2])) / (2 * h);
        cr_expect_float_eq((double)(i < 2 ? dw[i] : db[0]), g, 1e-6, "element %d", i);
    }
    model_destroy(m);
}

Test(linear, finds_the_line)
{
    struct dataset d = data_make(true);
    struct model *m = linear_make(5);
    float w[2] = {0, 0}, b[1] = {0}, dw[2], db[1];
    const float *values[] = {w, b};
    struct model_score score;

    for (int step = 0; step < 4000; step++) {
        model_gradient(m, &d, rows, 5, values, (float *[]){dw, db});
        w[0] -= .2f * dw[0];
        w[1] -= .2f * dw[1];
        b[0] -= .2f * db[0];
    }
    cr_expect_float_eq(w[0], 2.0f, 1e-4f);
    cr_expect_float_eq(w[1], -1.0f, 1e-4f);
    cr_expect_float_eq(b[0], .5f, 1e-4f);
    model_evaluate(m, &d, values, &score);
    cr_expect_lt(score.loss, 1e-8);
    cr_expect(isnan(score.accuracy));
    model_destroy(m);
}

Test(linear, takes_classes_as_numbers)
{
    struct dataset d = data_make(false);
    struct model *m = linear_make(2);
    float w[2] = {0, 0}, b[1] = {1}, dw[2], db[1];
    struct model_score score;
    struct dt_error err = {0};

    cr_expect_eq(model_check_data(m, &d, &err), DT_OK, "%s", err.text);
    double loss = model_gradient(m, &d, rows, 5, (const float *[]){w, b}, (float *[]){dw, db});
    cr_expect_float_eq(loss, (1 + 0 + 1 + 4 + 9) / 10.0, 1e-7); /* labels 0..4 against 1 */
    cr_expect_float_eq(db[0], -1.0f, 1e-6f);
    model_evaluate(m, &d, (const float *[]){w, b}, &score);
    cr_expect_float_eq(score.loss, loss, 1e-9);
    model_destroy(m);
}

Test(linear, batch_larger_than_the_scratch_memory)
{
    enum { WIDE = 6000000, N = 5 }; /* two rows fit */
    struct dataset d = {.n_rows = N, .n_features = WIDE, .n_classes = 1, .t = t};
    float *w = calloc(WIDE, sizeof(float));
    float *dw = calloc(WIDE, sizeof(float));
    float b[1] = {0}, db[1];
    struct model *m;

    d.x = calloc((size_t)N * WIDE, sizeof(float));
    for (size_t i = 0; i < N; i++)
        d.x[i * WIDE + i] = 1;
    model_set_threads(1);
    cr_assert_eq(model_create("linear", WIDE, 1, N, 1, &m, NULL), DT_OK);
    model_gradient(m, &d, rows, N, (const float *[]){w, b}, (float *[]){dw, db});
    for (int i = 0; i < N; i++)
        cr_expect_float_eq(dw[i], -t[i] / N, 1e-6f, "row %d", i);
    cr_expect_eq(dw[N], 0.0f);
    cr_expect_float_eq(db[0], -9.5f / 5, 1e-6f);
    model_destroy(m);
    free(w);
    free(dw);
    free(d.x);
}

Test(linear, a_model_of_classes_refuses_numbers)
{
    struct dataset d = data_make(true);
    struct dt_error err = {0};
    struct model *m;

    cr_expect_eq(model_target("linear"), DATASET_NUMBERS);
    cr_expect_eq(model_target("softmax"), DATASET_CLASSES);
    cr_expect_eq(model_target("nonsense"), DATASET_CLASSES);
    cr_assert_eq(model_create("softmax", 2, 1, 1, 0, &m, NULL), DT_OK);
    cr_expect_eq(model_check_data(m, &d, &err), DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "use model linear"), "%s", err.text);
    model_destroy(m);
    m = linear_make(1);
    d.n_features = 3;
    cr_expect_eq(model_check_data(m, &d, &err), DT_E_DATA);
    cr_expect_str_eq(model_variable(m, 0)->name, "dense/kernel");
    cr_expect_eq(model_variable(m, 0)->elements, 2);
    cr_expect_eq(model_variable(m, 1)->elements, 1);
    model_destroy(m);
}
