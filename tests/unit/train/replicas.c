/* replicas.c - K replicas are one batch of all their rows, read in the order of M*K workers. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "worker/train/replicas.h"

TestSuite(replicas, .timeout = 60);

#define FEATURES 5
#define CLASSES 3
#define ROWS 47
#define BATCH 6

static float x[ROWS * FEATURES];
static uint32_t y[ROWS];
static const struct dataset data = {.n_rows = ROWS,
                                    .n_features = FEATURES,
                                    .n_classes = CLASSES,
                                    .x = x,
                                    .y = y,
                                    .n_dims = 1,
                                    .dims = {FEATURES},
                                    .scale = 1};

struct bench { /* a model, values, and where gradients go */
    struct model *model;
    float values[2][FEATURES * CLASSES];
    float gradients[2][FEATURES * CLASSES];
    float *v[2];
    float *g[2];
    struct replicas *r;
};

static void
begin(struct bench *b, const char *spec, unsigned k, uint32_t workers, uint32_t rank)
{
    struct dt_error err = {DT_OK, ""};
    struct replicas_plan plan = {
        .n = k, .train = &data, .order = {7, ROWS, workers * k, BATCH}, .rank = rank};

    memset(b, 0, sizeof(*b));
    for (unsigned i = 0; i < ROWS * FEATURES; i++)
        x[i] = sinf((float)i);
    for (unsigned i = 0; i < ROWS; i++)
        y[i] = i % CLASSES;
    for (unsigned i = 0; i < FEATURES * CLASSES; i++)
        b->values[0][i] = cosf((float)i);
    b->v[0] = b->values[0];
    b->v[1] = b->values[1];
    b->g[0] = b->gradients[0];
    b->g[1] = b->gradients[1];
    cr_assert_eq(model_create(spec, FEATURES, CLASSES, BATCH, 1, &b->model, &err), DT_OK, "%s",
                 err.text);
    plan.model = b->model;
    plan.gradients = b->g;
    cr_assert_eq(replicas_create(&plan, &b->r, &err), DT_OK, "%s", err.text);
}

static void
end(struct bench *b)
{
    replicas_destroy(b->r);
    model_destroy(b->model);
}

static void
compute(struct bench *b, uint64_t step, struct replicas_sum *sum)
{
    replicas_compute(b->r, step, (const float *const *)b->v, sum);
}

/* The rows of ranks first..first+k-1 of `workers` in one call of the model. */
static double
at_once(struct bench *b, uint32_t workers, uint32_t first, unsigned k, uint64_t step,
        float *const *g, uint64_t *n_rows)
{
    struct order o = {7, ROWS, workers, BATCH};
    uint64_t rows[BATCH * 8];
    uint32_t n = 0;

    for (uint32_t i = 0; i < k; i++)
        n += order_rows(&o, step, first + i, rows + n);
    *n_rows = n;
    return n ? model_gradient(b->model, &data, rows, n, (const float *const *)b->v, g) : 0;
}

/* All steps of two epochs, the last of each is short: 47 = 2*18 + 11, or 47 = 36 + 11. */
static void
equals_one_batch(unsigned k, uint32_t workers, uint32_t rank)
{
    float plain[2][FEATURES * CLASSES];
    float *g[2] = {plain[0], plain[1]};
    struct bench b;
    struct replicas_sum sum;
    uint64_t rows;

    begin(&b, "softmax", k, workers, rank);
    struct order o = {7, ROWS, workers * k, BATCH};
    for (uint64_t step = 0; step < 2 * order_steps_per_epoch(&o); step++) {
        double loss = at_once(&b, workers * k, rank * k, k, step, g, &rows);
        compute(&b, step, &sum);
        cr_expect_eq(sum.n_rows, rows);
        cr_expect_eq(replicas_due(b.r, step), rows);
        if (rows == 0)
            continue;
        cr_expect_float_eq(sum.loss, loss, 1e-6, "step %d", (int)step);
        for (unsigned i = 0; i < FEATURES * CLASSES; i++)
            cr_expect_float_eq(b.gradients[0][i], plain[0][i], 1e-6, "step %d [%u]: %g, %g",
                               (int)step, i, (double)b.gradients[0][i], (double)plain[0][i]);
        for (unsigned i = 0; i < CLASSES; i++)
            cr_expect_float_eq(b.gradients[1][i], plain[1][i], 1e-6);
    }
    end(&b);
}

Test(replicas, one_is_the_model_alone)
{
    equals_one_batch(1, 1, 0);
}

Test(replicas, three_are_one_batch_of_all_their_rows)
{
    equals_one_batch(3, 1, 0);
}

Test(replicas, of_a_later_rank_read_its_part)
{
    equals_one_batch(3, 2, 0);
    equals_one_batch(3, 2, 1);
}

Test(replicas, more_than_there_are_rows)
{
    struct bench b;
    struct replicas_sum sum;

    begin(&b, "softmax", 64, 1, 0); /* 64 replicas, 47 rows */
    compute(&b, 0, &sum);
    cr_expect_eq(sum.n_rows, ROWS);
    cr_expect_eq(sum.n_batches, ROWS);
    cr_expect(isfinite(sum.loss));
    end(&b);
}

Test(replicas, of_a_rank_beyond_the_expected_have_rows_of_their_own)
{
    struct bench b;
    struct replicas_sum sum;

    begin(&b, "softmax", 3, 2, 2);
    compute(&b, 0, &sum);
    cr_expect_eq(sum.n_rows, 3 * BATCH);
    cr_expect_eq(sum.n_batches, 3);
    end(&b);
}

Test(replicas, give_the_same_bits_each_time)
{
    float first[FEATURES * CLASSES];
    struct bench b;
    struct replicas_sum sum;

    begin(&b, "softmax", 5, 1, 0);
    compute(&b, 0, &sum);
    memcpy(first, b.gradients[0], sizeof(first));
    for (int i = 0; i < 200; i++) {
        compute(&b, 0, &sum);
        cr_assert_arr_eq(b.gradients[0], first, sizeof(first));
    }
    end(&b);
}

Test(replicas, without_data_count_one_row_each)
{
    struct bench b;
    struct replicas_sum sum;

    begin(&b, "toy", 4, 1, 0);
    compute(&b, 0, &sum);
    cr_expect_eq(sum.n_rows, 4);
    cr_expect_eq(sum.n_batches, 4);
    cr_expect_eq(replicas_due(b.r, 0), 4);
    cr_expect_float_eq(b.gradients[0][0], b.values[0][0] + b.values[1][0] - 100, 1e-4);
    end(&b);
}

Test(replicas, a_loss_that_is_not_finite_is_seen_in_any_of_them)
{
    struct bench b;
    struct replicas_sum sum;
    struct order o = {7, ROWS, 3, BATCH};
    uint64_t rows[BATCH];

    begin(&b, "softmax", 3, 1, 0);
    cr_assert_eq(order_rows(&o, 0, 2, rows), BATCH);
    x[rows[3] * FEATURES] = (float)NAN;
    compute(&b, 0, &sum);
    cr_expect_not(isfinite(sum.loss));
    end(&b);
}
