/*
 * stepwise.c - gradients given one variable at a time give what dtw_step gives.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "house.h"

TestSuite(stepwise, .timeout = 120);

enum { VARIABLES = 3, ELEMENTS = 300000, STEPS = 5 };

struct worker {
    struct house *house;
    unsigned rank;
};

/* Worker 0 gives its gradients one by one, last variable first; worker 1 takes dtw_step. */
static void *
train(void *arg)
{
    struct worker *w = arg;
    uint64_t first;
    struct dtw_client *c = house_worker(w->house, w->rank, 2, VARIABLES, ELEMENTS, &first);
    float **values = house_arrays(VARIABLES, ELEMENTS, 9);
    float **g = house_arrays(VARIABLES, ELEMENTS, w->rank ? -3 : -1);
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_handle *h;
    struct dtw_result r;
    unsigned i, v;

    house_pull(c, values, first);
    for (i = 0; i < STEPS; i++) {
        if (w->rank == 0) {
            cr_assert_eq(dtw_step_begin(c, values, 10, 1, &h, &err), DTW_OK, "%s", err.text);
            for (v = VARIABLES; v-- > 0;)
                cr_assert_eq(dtw_step_gradient(h, v, g[v], &err), DTW_OK, "%s", err.text);
            cr_assert_eq(dtw_wait(h, 60000, &r, &err), DTW_OK, "%s", err.text);
        } else {
            cr_assert_eq(dtw_step(c, (const float *const *)g, values, 10, 1, &r, &err), DTW_OK);
        }
        cr_assert_eq(r.accumulated + r.duplicate, 2 * VARIABLES);
        for (v = 0; v < VARIABLES; v++) {
            cr_assert_eq(values[v][0], 2 * ((float)i + 1));
            cr_assert_eq(values[v][ELEMENTS - 1], 2 * ((float)i + 1));
        }
    }
    cr_assert_eq(dtw_global_step(c), STEPS);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_arrays_free(values, VARIABLES, ELEMENTS);
    house_arrays_free(g, VARIABLES, ELEMENTS);
    return NULL;
}

Test(stepwise, equals_a_step_at_once)
{
    struct house h;
    struct worker w[2];
    pthread_t threads[2];
    unsigned i;

    house_open(&h, 3, 32);
    for (i = 0; i < 2; i++) {
        w[i] = (struct worker){&h, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, train, &w[i]), 0);
    }
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    house_close(&h);
}

Test(stepwise, wrong_use_is_told_and_a_cancelled_step_does_no_harm)
{
    struct house h;
    struct dtw_client *c;
    float **values = house_arrays(2, 4, 0), **g = house_arrays(2, 4, -1);
    float bad[4] = {0, 0, NAN, 0};
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_handle *s;
    uint64_t first;

    house_open(&h, 1, 32);
    h.consistency = "async";
    c = house_worker(&h, 0, 1, 2, 4, &first);
    cr_assert_eq(dtw_step_begin(c, values, 1, 1, &s, &err), DTW_INVALID, "nothing was pulled");
    house_pull(c, values, 0);
    cr_assert_eq(dtw_step_begin(c, values, 0, 0, &s, &err), DTW_INVALID);
    cr_assert_eq(dtw_step_begin(c, NULL, 1, 1, &s, &err), DTW_INVALID);
    cr_assert_eq(dtw_step_begin(c, values, 1, 1, &s, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_step_gradient(s, 2, g[0], &err), DTW_INVALID);
    cr_assert_eq(dtw_step_gradient(s, 0, bad, &err), DTW_NOT_FINITE);
    cr_assert(strstr(err.text, "variable v0"), "%s", err.text);
    cr_assert_eq(dtw_step_gradient(s, 0, g[0], &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_step_gradient(s, 0, g[0], &err), DTW_INVALID);
    cr_assert_eq(dtw_wait(s, 1000, NULL, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "missing"), "%s", err.text);
    dtw_cancel(s);
    cr_assert_eq(dtw_step(c, (const float *const *)g, values, 1, 1, NULL, &err), DTW_OK, "%s",
                 err.text);
    /* what was given before the cancel may have been sent or not */
    cr_assert((values[0][3] == 1 || values[0][3] == 2) && values[1][3] == 1, "%g %g",
              (double)values[0][3], (double)values[1][3]);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_close(&h);
    house_arrays_free(values, 2, 4);
    house_arrays_free(g, 2, 4);
}
