/*
 * golden_rules.c - the golden rows of every rule (ALGORITHMS section 1, TensorFlow's unit tests) through the real server
 * path: libdtworker, real sockets, a real psd; one job with a variable for each row, pushed to asynchronously and in
 * rounds.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "house.h"

TestSuite(golden_rules, .timeout = 240);

#define PUSHES 3
#define MAX_ELEMENTS 3

struct row {
    const char *name, *optimizer;
    float lr;
    unsigned n_params;
    struct dtw_param params[2];
    uint64_t n;
    float start[MAX_ELEMENTS];
    float gradients[PUSHES][MAX_ELEMENTS];
    double after[PUSHES][MAX_ELEMENTS]; /* NAN: not in the table */
};

#define W0                                                                                         \
    {                                                                                              \
        1, -2, .5f                                                                                 \
    }
#define GRADIENTS                                                                                  \
    {                                                                                              \
        {.1f, -.2f, 0}, {.3f, .1f, -.4f},                                                          \
        {                                                                                          \
            -.2f, .5f, .05f                                                                        \
        }                                                                                          \
    }

static const struct row rows[] = {
    {"sgd",
     "sgd",
     .1f,
     0,
     {{0}},
     3,
     W0,
     GRADIENTS,
     {{.99000001, -1.98000002, .5},
      {.960000038, -1.99000001, .540000021},
      {.980000019, -2.03999996, .535000026}}},
    {"momentum",
     "momentum",
     .1f,
     1,
     {{"momentum", .9f}},
     3,
     W0,
     GRADIENTS,
     {{.99000001, -1.98000002, .5},
      {.951000035, -1.972, .540000021},
      {.935900033, -2.01480007, .57100004}}},
    {"adagrad",
     "adagrad",
     .1f,
     1,
     {{"initial_accumulator", .1f}},
     3,
     W0,
     GRADIENTS,
     {{.969848871, -1.94654775, .5},
      {.902766824, -1.97236764, .578446448},
      {.943591654, -2.0514245, .568687439}}},
    {"adam",
     "adam",
     .1f,
     0,
     {{0}},
     3,
     W0,
     GRADIENTS,
     {{.900000334, -1.9000001, .5},
      {.808222651, -1.87336648, .574413359},
      {.782432497, -1.92329156, .623562932}}},
    {"rmsprop",
     "rmsprop",
     .1f,
     0,
     {{0}},
     3,
     W0,
     GRADIENTS,
     {{.989464939, -1.97896481, .5},
      {.956333458, -1.99004447, .544011891},
      {.979553044, -2.04746866, .538213789}}},
    {"ftrl",
     "ftrl",
     .1f,
     0,
     {{0}},
     3,
     W0,
     GRADIENTS,
     {{.0163862742, -.256239265, 0},
      {-.0506957658, -.282059163, .0784464478},
      {-.00987093896, -.361116111, .0686874464}}},
    {"tf/adagrad",
     "adagrad",
     3,
     0,
     {{0}},
     1,
     {1},
     {{.1f}, {.1f}, {.1f}},
     {{NAN}, {NAN}, {-1.60260987}}},
    {"tf/ftrl",
     "ftrl",
     3,
     0,
     {{0}},
     2,
     {0, 0},
     {{.1f, .2f}, {.1f, .2f}, {.1f, .2f}},
     {{NAN, NAN}, {NAN, NAN}, {-2.60260963, -4.29698515}}},
    {"add",
     "add",
     -1,
     0,
     {{0}},
     3,
     W0,
     GRADIENTS,
     {{1.1, -2.2, .5}, {1.4, -2.1, .1}, {1.2, -1.6, .15}}},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void
fill(void *arg, unsigned index, float *values, uint64_t n)
{
    (void)arg;
    memcpy(values, rows[index].start, n * sizeof(*values));
}

static struct dtw_client *
open_worker(struct house *h)
{
    struct dtw_client *c = NULL;
    struct dtw_options o;
    struct dtw_error err = {DTW_OK, ""};

    house_options(h, &o, 0, 1);
    cr_assert_eq(dtw_open(&o, &c, &err), DTW_OK, "%s", err.text);
    for (unsigned i = 0; i < N_ROWS; i++) {
        struct dtw_variable v = {.name = rows[i].name,
                                 .n_dims = 1,
                                 .shape = &rows[i].n,
                                 .optimizer = rows[i].optimizer,
                                 .lr = rows[i].lr,
                                 .params = rows[i].params,
                                 .n_params = rows[i].n_params};
        cr_assert_eq(dtw_declare(c, &v, NULL, &err), DTW_OK, "%s", err.text);
    }
    cr_assert_eq(dtw_init(c, fill, NULL, NULL, &err), DTW_OK, "%s", err.text);
    return c;
}

static void
expect_row(const struct row *r, unsigned push, const float *got)
{
    for (uint64_t k = 0; k < r->n; k++) {
        double want = r->after[push][k];

        cr_expect(isnan(want) || fabs((double)got[k] - want) <= 1e-6 * fabs(want) + 1e-9,
                  "%s, push %u, element %u: %.9g, the table says %.9g", r->name, push + 1,
                  (unsigned)k, (double)got[k], want);
    }
}

static void
follow(const char *consistency)
{
    float gradients[N_ROWS][MAX_ELEMENTS], values[N_ROWS][MAX_ELEMENTS];
    const float *g[N_ROWS];
    float *v[N_ROWS];
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_result result;
    struct house h;

    house_open(&h, 2, 32);
    h.consistency = consistency;
    struct dtw_client *c = open_worker(&h);
    for (unsigned i = 0; i < N_ROWS; i++) {
        g[i] = gradients[i];
        v[i] = values[i];
    }
    house_pull(c, v, 0);
    for (unsigned push = 0; push < PUSHES; push++) {
        for (unsigned i = 0; i < N_ROWS; i++)
            memcpy(gradients[i], rows[i].gradients[push], sizeof(gradients[i]));
        cr_assert_eq(dtw_step(c, g, v, 1, 1, &result, &err), DTW_OK, "%s", err.text);
        for (unsigned i = 0; i < N_ROWS; i++)
            expect_row(&rows[i], push, values[i]);
    }
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_close(&h);
}

Test(golden_rules, pushes_at_arrival)
{
    follow("async");
}

Test(golden_rules, rounds)
{
    follow("sync");
}
