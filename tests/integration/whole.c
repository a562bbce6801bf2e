/*
 * whole.c - locking variable under load: three workers add a constant to all elements of variables of several slices,
 * and whatever is pulled, all elements of a variable are equal.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "house.h"

TestSuite(whole, .timeout = 240);

#define WORKERS 3
#define STEPS 30
#define VARIABLES 2
#define ELEMENTS 600000 /* three slices */

static atomic_int torn; /* pulled variables with slices of different age */

struct worker {
    struct house *house;
    unsigned rank;
};

static void
look(float *const *values)
{
    unsigned v;

    for (v = 0; v < VARIABLES; v++) {
        uint64_t k, different = 0;

        for (k = 0; k < ELEMENTS; k += 999)
            different += values[v][k] != values[v][0];
        different += values[v][ELEMENTS - 1] != values[v][0];
        if (different)
            atomic_fetch_add(&torn, 1);
    }
}

static void *
train(void *arg)
{
    struct worker *w = arg;
    uint64_t first;
    struct dtw_client *c = house_worker(w->house, w->rank, WORKERS, VARIABLES, ELEMENTS, &first);
    float **values = house_arrays(VARIABLES, ELEMENTS, 0);
    float **gradients = house_arrays(VARIABLES, ELEMENTS, -1);
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_result result;
    int i;

    house_pull(c, values, 0);
    for (i = 0; i < STEPS; i++) {
        cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 1, 1, &result, &err),
                     DTW_OK, "%s", err.text);
        /* a push that is sent again, on a slow machine, is told apart */
        cr_assert_eq(result.accumulated + result.duplicate, result.n_slices);
        look(values);
    }
    /* the global step would count a push that another shard has still before it */
    if (w->rank == 0) {
        cr_assert_eq(dtw_wait_step(c, UINT64_MAX, 60000, &err), DTW_OK, "%s", err.text);
        house_pull(c, values, 0);
        cr_assert_eq(values[1][ELEMENTS - 1], WORKERS * STEPS, "every update once");
    }
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_arrays_free(values, VARIABLES, ELEMENTS);
    house_arrays_free(gradients, VARIABLES, ELEMENTS);
    return NULL;
}

static int
count_torn(const char *locking)
{
    struct house h;
    struct worker w[WORKERS];
    pthread_t threads[WORKERS];
    unsigned i;

    atomic_store(&torn, 0);
    house_open(&h, 3, 32);
    h.consistency = "async";
    h.locking = locking;
    for (i = 0; i < WORKERS; i++) {
        w[i] = (struct worker){&h, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, train, &w[i]), 0);
    }
    for (i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    house_close(&h);
    return atomic_load(&torn);
}

Test(whole, variables_are_pulled_whole)
{
    cr_assert_eq(count_torn("variable"), 0);
}

Test(whole, with_locking_slice_the_same_load_shows_slices_of_different_age)
{
    int seen = 0, i;

    for (i = 0; seen == 0 && i < 20; i++)
        seen = count_torn("slice");
    cr_assert_gt(seen, 0, "else the other test shows nothing");
}
