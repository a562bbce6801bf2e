/*
 * network.c - mlp: gradients against central differences in double, golden initial values, layers.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/train/model.h"

#define ROWS 11
#define FEATURES 5
#define CLASSES 3

TestSuite(mlp, .timeout = 240);

struct network {
    struct dataset data;
    struct model *m;
    uint32_t widths[4]; /* features, hidden, hidden, classes */
    float *values[6];
    float *gradients[6];
};

static float
number(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static void
network_make(struct network *n, uint32_t max_batch)
{
    unsigned state = 777;

    *n = (struct network){.widths = {FEATURES, 4, 6, CLASSES}};
    n->data = (struct dataset){.n_rows = ROWS, .n_features = FEATURES, .n_classes = CLASSES};
    n->data.x = calloc(ROWS * FEATURES, sizeof(float));
    n->data.y = calloc(ROWS, sizeof(uint32_t));
    for (int i = 0; i < ROWS * FEATURES; i++)
        n->data.x[i] = number(&state);
    for (uint32_t i = 0; i < ROWS; i++)
        n->data.y[i] = i * 5 % CLASSES;
    model_set_threads(1);
    cr_assert_eq(model_create("mlp:4,6", FEATURES, CLASSES, max_batch, 9, &n->m, NULL), DT_OK);
    cr_assert_eq(model_n_variables(n->m), 6);
    for (uint32_t v = 0; v < 6; v++) {
        uint64_t elements = model_variable(n->m, v)->elements;
        n->values[v] = calloc(elements, sizeof(float));
        n->gradients[v] = calloc(elements, sizeof(float));
        model_init(n->m, v, n->values[v]);
        for (uint64_t i = 0; v % 2 == 1 && i < elements; i++) /* biases that are not 0 */
            n->values[v][i] = number(&state) / 4;
    }
}

static void
network_remove(struct network *n)
{
    for (int v = 0; v < 6; v++) {
        free(n->values[v]);
        free(n->gradients[v]);
    }
    model_destroy(n->m);
    dataset_deinit(&n->data);
}

static double
value(const struct network *n, int v, uint32_t i, int moved, uint32_t at, double by)
{
    return (double)n->values[v][i] + (v == moved && i == at ? by : 0);
}

/* The loss of one row in double, written plainly; element `at` of variable `moved` is moved by `by`. */
static double
row_loss(const struct network *n, uint64_t row, int moved, uint32_t at, double by)
{
    double in[8];
    double out[8];
    double sum = 0;

    for (int i = 0; i < FEATURES; i++)
        in[i] = (double)n->data.x[row * FEATURES + (uint64_t)i];
    for (int l = 0; l < 3; l++) {
        for (uint32_t j = 0; j < n->widths[l + 1]; j++) {
            out[j] = value(n, 2 * l + 1, j, moved, at, by);
            for (uint32_t i = 0; i < n->widths[l]; i++)
                out[j] += in[i] * value(n, 2 * l, i * n->widths[l + 1] + j, moved, at, by);
            if (l < 2 && out[j] < 0)
                out[j] = 0;
        }
        memcpy(in, out, sizeof(in));
    }
    for (int j = 0; j < CLASSES; j++)
        sum += exp(in[j]);
    return log(sum) - in[n->data.y[row]];
}

static double
mean_loss(const struct network *n, const uint64_t *rows, int count, int moved, uint32_t at,
          double by)
{
    double loss = 0;

    for (int i = 0; i < count; i++)
        loss += row_loss(n, rows[i], moved, at, by);
    return loss / count;
}

Test(mlp, gradient_is_that_of_central_differences)
{
    static const uint64_t rows[] = {3, 0, 10, 7, 7, 5, 1, 9, 2};
    struct network n;
    const double h = 1e-6;
    unsigned zeros = 0;
    unsigned all = 0;

    network_make(&n, 9);
    double loss =
        model_gradient(n.m, &n.data, rows, 9, (const float *const *)n.values, n.gradients);
    cr_expect_float_eq(loss, mean_loss(&n, rows, 9, -1, 0, 0), 1e-6);
    cr_expect_float_eq(model_gradient(n.m, &n.data, rows, 9, (const float *const *)n.values, NULL),
                       loss, 1e-15);
    for (int v = 0; v < 6; v++) {
        for (uint32_t i = 0; i < model_variable(n.m, (uint32_t)v)->elements; i++) {
            double d = (mean_loss(&n, rows, 9, v, i, h) - mean_loss(&n, rows, 9, v, i, -h)) / 2 / h;
            cr_expect_float_eq((double)n.gradients[v][i], d, 1e-6, "variable %d element %u", v, i);
            zeros += n.gradients[v][i] == 0.0f;
            all++;
        }
    }
    cr_expect_lt(zeros, all / 4, "a network without gradients shows nothing");
    network_remove(&n);
}

Test(mlp, gradient_of_a_batch_is_the_weighted_mean_of_its_parts)
{
    struct network n;
    uint64_t rows[ROWS];
    float whole[24];
    float first[24];

    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = i;
    network_make(&n, ROWS);
    const float *const *values = (const float *const *)n.values;
    double all = model_gradient(n.m, &n.data, rows, ROWS, values, n.gradients);
    memcpy(whole, n.gradients[2], sizeof(whole));
    double a = model_gradient(n.m, &n.data, rows, 7, values, n.gradients);
    memcpy(first, n.gradients[2], sizeof(first));
    double b = model_gradient(n.m, &n.data, rows + 7, 4, values, n.gradients);
    cr_expect_float_eq(all, (7 * a + 4 * b) / 11, 1e-7);
    for (int i = 0; i < 24; i++)
        cr_expect_float_eq(whole[i], (7 * first[i] + 4 * n.gradients[2][i]) / 11, 1e-6f);
    network_remove(&n);
}

Test(mlp, batch_larger_than_the_scratch_memory)
{
    /* a hidden layer of 2^20 units: the scratch memory holds 16 rows of a batch of 20 */
    enum { WIDE = 1 << 20, N = 20 };
    struct dataset d = {.n_rows = N, .n_features = 1, .n_classes = 2};
    struct model *m;
    uint64_t rows[N];
    float *values[4];
    float *gradients[4];

    d.x = calloc(N, sizeof(float));
    d.y = calloc(N, sizeof(uint32_t));
    model_set_threads(1);
    cr_assert_eq(model_create("mlp:1048576", 1, 2, N, 1, &m, NULL), DT_OK);
    for (uint32_t v = 0; v < 4; v++) {
        values[v] = calloc(model_variable(m, v)->elements, sizeof(float));
        gradients[v] = calloc(model_variable(m, v)->elements, sizeof(float));
    }
    values[0][5] = 1; /* unit 5 hands the feature on, to class 1 alone */
    values[2][11] = 1;
    for (uint64_t i = 0; i < N; i++) {
        rows[i] = i;
        d.x[i] = i == N - 1 ? 100 : 0; /* in the second chunk; all labels are 0 */
    }
    double loss = model_gradient(m, &d, rows, N, (const float *const *)values, gradients);
    cr_expect_float_eq(loss, ((N - 1) * log(2) + 100) / N, 1e-5);
    cr_expect_float_eq(gradients[3][1], (9.5f + 1) / N, 1e-6f); /* softmax is 1/2, then 1 */
    cr_expect_float_eq(gradients[2][11], 100.0f / N, 1e-4f);
    cr_expect_float_eq(gradients[0][5], 100.0f / N, 1e-4f);
    cr_expect_eq(gradients[0][6], 0.0f);
    for (uint32_t v = 0; v < 4; v++) {
        free(values[v]);
        free(gradients[v]);
    }
    model_destroy(m);
    dataset_deinit(&d);
}

struct seen { /* what was told while the gradient was computed */
    struct network *n;
    float *const *expected;
    uint32_t order[6];
    uint32_t count;
    double loss;
};

/* Whoever is told may overwrite the variable's values: nothing of the batch reads them any more. */
static void
see(void *arg, uint32_t variable, double loss)
{
    struct seen *s = arg;
    uint64_t elements = model_variable(s->n->m, variable)->elements;

    cr_assert_lt(s->count, 6);
    s->order[s->count++] = variable;
    s->loss = loss;
    cr_assert_arr_eq(s->n->gradients[variable], s->expected[variable], elements * sizeof(float));
    for (uint64_t i = 0; i < elements; i++)
        s->n->values[variable][i] = 1e9f;
}

Test(mlp, tells_when_a_gradient_is_final_the_last_layer_first)
{
    static const uint32_t order[] = {5, 4, 3, 2, 1, 0};
    uint64_t rows[ROWS];
    float *expected[6];
    struct network n;

    network_make(&n, ROWS);
    struct seen seen = {.n = &n, .expected = expected};
    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = i;
    for (int v = 0; v < 6; v++)
        expected[v] = calloc(model_variable(n.m, (uint32_t)v)->elements, sizeof(float));
    double loss =
        model_gradient(n.m, &n.data, rows, ROWS, (const float *const *)n.values, expected);
    model_on_ready(n.m, see, &seen);
    cr_expect_eq(
        model_gradient(n.m, &n.data, rows, ROWS, (const float *const *)n.values, n.gradients),
        loss);
    cr_expect_eq(seen.count, 6);
    cr_expect_eq(seen.loss, loss);
    cr_expect_arr_eq(seen.order, order, sizeof(order));
    for (int v = 0; v < 6; v++)
        free(expected[v]);
    network_remove(&n);
}

struct needs { /* what a gradient asked for */
    struct network *n;
    float *const *kept; /* the values, which come when they are asked for */
    uint32_t order[6];
    uint32_t count;
    uint32_t missing; /* does not come */
};

static bool
bring(void *arg, uint32_t variable)
{
    struct needs *s = arg;

    cr_assert_lt(s->count, 6);
    s->order[s->count++] = variable;
    if (variable == s->missing)
        return false;
    memcpy(s->n->values[variable], s->kept[variable],
           model_variable(s->n->m, variable)->elements * sizeof(float));
    return true;
}

static void
never(void *arg, uint32_t variable, double loss)
{
    (void)arg;
    (void)loss;
    cr_assert_fail("variable %u is told", variable);
}

Test(mlp, asks_for_values_the_first_layer_first)
{
    static const uint32_t order[] = {0, 1, 2, 3, 4, 5};
    uint64_t rows[ROWS];
    float *kept[6], *expected[6];
    struct network n;

    network_make(&n, ROWS);
    struct needs needs = {.n = &n, .kept = kept, .missing = 6};
    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = i;
    for (uint32_t v = 0; v < 6; v++) {
        kept[v] = calloc(model_variable(n.m, v)->elements, sizeof(float));
        expected[v] = calloc(model_variable(n.m, v)->elements, sizeof(float));
        memcpy(kept[v], n.values[v], model_variable(n.m, v)->elements * sizeof(float));
    }
    double loss =
        model_gradient(n.m, &n.data, rows, ROWS, (const float *const *)n.values, expected);
    for (uint32_t v = 0; v < 6; v++)
        memset(n.values[v], 0xff, model_variable(n.m, v)->elements * sizeof(float)); /* NaN */
    model_on_need(n.m, bring, &needs);
    cr_expect_eq(
        model_gradient(n.m, &n.data, rows, ROWS, (const float *const *)n.values, n.gradients),
        loss);
    cr_expect_eq(needs.count, 6);
    cr_expect_arr_eq(needs.order, order, sizeof(order));
    needs.count = 0;
    needs.missing = 3;
    model_on_ready(n.m, never, NULL);
    cr_expect(isnan(
        model_gradient(n.m, &n.data, rows, ROWS, (const float *const *)n.values, n.gradients)));
    cr_expect_eq(needs.count, 4, "it gives up at the first one that does not come");
    for (uint32_t v = 0; v < 6; v++) {
        cr_expect_arr_eq(n.gradients[v], expected[v],
                         model_variable(n.m, v)->elements * sizeof(float));
        free(kept[v]);
        free(expected[v]);
    }
    network_remove(&n);
}

Test(model, one_without_layers_asks_for_all_at_the_beginning)
{
    struct model *m;
    float a[2] = {0, 0}, b[2] = {0, 0}, ga[2], gb[2];
    const float *const values[] = {a, b};
    float *const gradients[] = {ga, gb};
    struct needs needs = {.missing = 0};

    cr_assert_eq(model_create("toy", 0, 0, 1, 1, &m, NULL), DT_OK);
    model_on_need(m, bring, &needs);
    cr_expect(isnan(model_gradient(m, NULL, NULL, 0, values, gradients)));
    cr_expect_eq(needs.count, 1);
    model_on_need(m, NULL, NULL);
    cr_expect_eq(model_gradient(m, NULL, NULL, 0, values, gradients), 10000);
    model_destroy(m);
}

/* Computed apart from this program, from Philox4x32-10's definition. They never change. */
Test(mlp, initial_values_are_golden)
{
    static const float first[] = {0x1.75eaeep-1f,  0x1.695edap-3f, -0x1.c4eeeap-3f,
                                  -0x1.683d7ap-1f, 0x1.07d692p+0f, -0x1.b6306ep-1f};
    static const float third[] = {0x1.3a82aep-1f, 0x1.192baep-1f,  -0x1.2d0946p-5f,
                                  0x1.eccc64p-1f, -0x1.3f597ep+0f, 0x1.dddfa4p-2f};
    struct model *m;
    float values[5 * 3];

    cr_assert_eq(model_create("mlp:3,2", 5, 2, 1, 1, &m, NULL), DT_OK);
    model_init(m, 0, values);
    for (int i = 0; i < 6; i++)
        cr_expect_eq(values[i], first[i], "element %d is %a", i, (double)values[i]);
    model_init(m, 2, values);
    for (int i = 0; i < 6; i++)
        cr_expect_eq(values[i], third[i], "element %d is %a", i, (double)values[i]);
    model_init(m, 1, values);
    cr_expect(values[0] == 0 && values[1] == 0 && values[2] == 0);
    model_destroy(m);
}

Test(mlp, initial_values_of_an_image_model)
{
    enum { N = 784 * 128 };
    struct model *m;
    float *values = calloc(N, sizeof(float));
    double sum = 0;
    double squares = 0;

    cr_assert_eq(model_create("mlp:128", 784, 10, 1, 0x123456789abcdef, &m, NULL), DT_OK);
    model_init(m, 0, values);
    cr_expect_eq(values[0], -0x1.3a316ap-7f);
    cr_expect_eq(values[1], -0x1.1ee162p-4f);
    cr_expect_eq(values[2], -0x1.88f9aep-8f);
    cr_expect_eq(values[N - 1], 0x1.05f12p-6f);
    for (int i = 0; i < N; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    cr_expect_float_eq(sum / N, 0, 5e-4);
    cr_expect_float_eq(squares / N, 2.0 / 784, 2e-5); /* He's variance */
    free(values);
    model_destroy(m);
}

Test(mlp, loss_at_the_start_is_near_that_of_guessing)
{
    struct network n;
    uint64_t rows[ROWS];
    struct model_score score;

    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = i;
    network_make(&n, 4);
    for (uint32_t v = 0; v < 6; v++)
        model_init(n.m, v, n.values[v]);
    double loss = model_gradient(n.m, &n.data, rows, ROWS, (const float *const *)n.values, NULL);
    cr_expect(loss > .5 * log(CLASSES) && loss < 2 * log(CLASSES), "%g", loss);
    model_evaluate(n.m, &n.data, (const float *const *)n.values, &score);
    cr_expect_float_eq(score.loss, loss, 1e-7);
    cr_expect(score.accuracy >= 0 && score.accuracy <= 1);
    n.values[0][3] = NAN;
    cr_expect(
        isnan(model_gradient(n.m, &n.data, rows, 2, (const float *const *)n.values, n.gradients)));
    network_remove(&n);
}

/* Exclusive or: no model without a hidden layer gets more than 3 of 4. */
Test(mlp, learns_exclusive_or)
{
    float x[] = {0, 0, 0, 1, 1, 0, 1, 1};
    uint32_t y[] = {0, 1, 1, 0};
    struct dataset d = {.n_rows = 4, .n_features = 2, .n_classes = 2, .x = x, .y = y};
    const uint64_t rows[] = {0, 1, 2, 3};
    float values[4][64];
    float gradients[4][64];
    float *w[4] = {values[0], values[1], values[2], values[3]};
    float *g[4] = {gradients[0], gradients[1], gradients[2], gradients[3]};
    struct model_score score;
    struct model *m;

    model_set_threads(1);
    cr_assert_eq(model_create("mlp:16", 2, 2, 4, 5, &m, NULL), DT_OK);
    for (uint32_t v = 0; v < 4; v++)
        model_init(m, v, w[v]);
    for (int step = 0; step < 500; step++) {
        model_gradient(m, &d, rows, 4, (const float *const *)w, g);
        for (uint32_t v = 0; v < 4; v++) {
            for (uint64_t i = 0; i < model_variable(m, v)->elements; i++)
                w[v][i] -= .5f * g[v][i];
        }
    }
    model_evaluate(m, &d, (const float *const *)w, &score);
    cr_expect_eq(score.accuracy, 1.0);
    cr_expect_lt(score.loss, .05);
    model_destroy(m);
}

Test(mlp, names_and_shapes)
{
    static const char *const names[] = {"dense1/kernel", "dense1/bias",   "dense2/kernel",
                                        "dense2/bias",   "dense3/kernel", "dense3/bias"};
    struct network n;

    network_make(&n, 1);
    cr_expect_str_eq(model_spec(n.m), "mlp:4,6");
    cr_expect_eq(model_target("mlp:4,6"), DATASET_CLASSES);
    for (uint32_t v = 0; v < 6; v++) {
        cr_expect_str_eq(model_variable(n.m, v)->name, names[v]);
        cr_expect_str_eq(model_variable(n.m, v)->init, v % 2 ? "zeros" : "he");
    }
    cr_expect_eq(model_variable(n.m, 2)->shape[0], 4);
    cr_expect_eq(model_variable(n.m, 2)->shape[1], 6);
    cr_expect_eq(model_variable(n.m, 5)->shape[0], CLASSES);
    network_remove(&n);
}

static void
expect_refused(const char *spec, uint32_t features, enum dt_status code, const char *word)
{
    struct model *m;
    struct dt_error err = {0};

    cr_expect_eq(model_create(spec, features, 10, 1, 0, &m, &err), code, "%s", spec);
    cr_expect_not_null(strstr(err.text, word), "'%s' is not in: %s", word, err.text);
    cr_expect_null(m);
}

Test(mlp, senseless_layers_are_refused)
{
    static const char *const bad[] = {"mlp",
                                      "mlp:",
                                      "mlp:0",
                                      "mlp:8,",
                                      "mlp:8,,8",
                                      "mlp:,8",
                                      "mlp:1048577",
                                      "mlp:-1",
                                      "mlp:8 ",
                                      "mlp:x",
                                      "mlp:99999999999999999999"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_refused(bad[i], 4, DT_E_USAGE, "as in mlp:128");
    expect_refused("mlp:1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 4, DT_E_USAGE, "more than 15 hidden");
    expect_refused("mlp:1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000", 4,
                   DT_E_USAGE, "longer than 63");
    expect_refused("mlp:1048576", 2000000, DT_E_DATA, "2000000 x 1048576 weights is too large");
    expect_refused("mlpx:8", 4, DT_E_USAGE, "unknown");
    expect_refused("softmax:8", 4, DT_E_USAGE, "unknown");
    expect_refused("mlp:8", 0, DT_E_USAGE, "needs data");
}
