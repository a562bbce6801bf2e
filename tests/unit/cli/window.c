/* window.c - local steps, the reduction of a window and the rate of a rank, on the toy's two variables. */
#include <criterion/criterion.h>

#include "worker/train/window.h"

TestSuite(window, .timeout = 40);

#define BATCHES 3

static const struct window_rates half = {.local = 0.5f};

static struct model *
toy(void)
{
    struct model *m = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(model_create("toy", 0, 0, 1, 1, &m, &err), DT_OK, "%s", err.text);
    return m;
}

/* Gradients 1, 2, 3 of a, and -1, -2, -3 of b, through a window of three; what is pushed into `out`. */
static void
run(struct window *w, float values[2][2], float out[2][2])
{
    float *v[2] = {values[0], values[1]}, *g[2] = {out[0], out[1]};

    for (int i = 1; i <= BATCHES; i++) {
        for (int k = 0; k < 2; k++) {
            out[0][k] = (float)i;
            out[1][k] = (float)-i;
        }
        window_add(w, v, g);
    }
    window_close(w, v, g);
}

static void
expect(float got[2][2], float want)
{
    for (int k = 0; k < 2; k++) {
        cr_expect_float_eq(got[0][k], want, 1e-6f, "%g", (double)got[0][k]);
        cr_expect_float_eq(got[1][k], -want, 1e-6f, "%g", (double)got[1][k]);
    }
}

static void
check(struct algorithm row, float scale, float want_pushed, float want_value)
{
    struct model *m = toy();
    struct window w;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(window_init(&w, &row, m, BATCHES, &half, &err), DT_OK, "%s", err.text);
    w.scale = scale;
    for (int i = 0; i < 2; i++) { /* a second window starts afresh */
        float values[2][2] = {{0, 0}, {0, 0}}, pushed[2][2];

        run(&w, values, pushed);
        expect(pushed, want_pushed);
        expect(values, want_value);
    }
    window_deinit(&w);
    model_destroy(m);
}

Test(window, the_mean_or_the_sum_is_pushed)
{
    check((struct algorithm){.name = "mean"}, 1, 2, 0);
    check((struct algorithm){.name = "sum", .reduction = REDUCTION_SUM}, 1, 6, 0);
}

Test(window, local_steps_move_the_values_and_not_what_is_pushed)
{
    check((struct algorithm){.name = "local", .local_optimizer = "sgd"}, 1, 2, -3);
}

Test(window, the_rate_of_a_rank_multiplies_what_is_pushed)
{
    check((struct algorithm){.name = "mean"}, 0.25f, 0.5f, 0);
    check((struct algorithm){.name = "sum", .reduction = REDUCTION_SUM}, 0.25f, 1.5f, 0);
}

Test(window, a_window_of_one_batch_is_scaled_as_well)
{
    struct model *m = toy();
    struct algorithm row = {.name = "one"};
    struct window w;
    struct dt_error err = {DT_OK, ""};
    float values[2][2] = {{0, 0}, {0, 0}}, gradients[2][2] = {{4, 4}, {-4, -4}};

    cr_assert_eq(window_init(&w, &row, m, 1, &(struct window_rates){0}, &err), DT_OK, "%s",
                 err.text);
    w.scale = 0.125f;
    window_add(&w, (float *[]){values[0], values[1]}, (float *[]){gradients[0], gradients[1]});
    window_close(&w, (float *[]){values[0], values[1]}, (float *[]){gradients[0], gradients[1]});
    expect(gradients, 0.5f);
    window_deinit(&w);
    model_destroy(m);
}
