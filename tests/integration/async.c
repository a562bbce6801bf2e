/*
 * async.c - asynchronous jobs: libdtworker against a real psd over real sockets, in one process.
 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "house.h"

TestSuite(async, .timeout = 240);

#define STEPS 60

struct worker {
    struct house *house;
    unsigned rank;
    uint64_t staleness; /* the largest */
};

static void *
train(void *arg)
{
    struct worker *w = arg;
    uint64_t step;
    struct dtw_client *c = house_worker(w->house, w->rank, 3, 2, 300000, &step);
    float **values = house_arrays(2, 300000, 0), **gradients = house_arrays(2, 300000, -1);
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_result result;
    unsigned i;

    house_pull(c, values, 0);
    for (i = 0; i < STEPS; i++) {
        cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 10, 1, &result, &err),
                     DTW_OK, "%s", err.text);
        cr_assert_eq(result.accumulated + result.duplicate, result.n_slices);
        if (result.staleness > w->staleness)
            w->staleness = result.staleness;
    }
    /* the global step would count a push that another shard has still before it */
    if (w->rank == 0) {
        cr_assert_eq(dtw_wait_step(c, UINT64_MAX, 30000, &err), DTW_OK, "%s", err.text);
        cr_assert_eq(dtw_global_step(c), 3 * STEPS);
        house_pull(c, values, 0);
        cr_assert_eq(values[0][0], 3 * STEPS, "every update once");
        cr_assert_eq(values[1][299999], 3 * STEPS);
    }
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_arrays_free(values, 2, 300000);
    house_arrays_free(gradients, 2, 300000);
    return NULL;
}

Test(async, three_workers_update_at_arrival_and_see_their_staleness)
{
    struct house h;
    struct worker w[3];
    pthread_t threads[3];
    uint64_t staleness = 0;
    unsigned i;

    house_open(&h, 3, 32);
    h.consistency = "async";
    for (i = 0; i < 3; i++) {
        w[i] = (struct worker){&h, i, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, train, &w[i]), 0);
    }
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < 3; i++)
        staleness = w[i].staleness > staleness ? w[i].staleness : staleness;
    cr_assert_gt(staleness, 0, "three workers at once: somebody was overtaken");
    house_close(&h);
}

Test(async, the_stop_step_comes_with_the_answers)
{
    struct house h;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};
    float **values = house_arrays(1, 4, 0), **gradients = house_arrays(1, 4, 1);
    uint64_t step;

    house_open(&h, 2, 32);
    h.consistency = "async";
    c = house_worker(&h, 0, 1, 1, 4, &step);
    house_pull(c, values, 0);
    cr_assert_eq(dtw_stop_step(c), UINT64_MAX);
    cr_assert_eq(dtw_set_stop_step(c, 7, 10000, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 1, 1, NULL, &err), DTW_OK);
    cr_assert_eq(dtw_stop_step(c), 7);
    cr_assert_eq(dtw_global_step(c), 1);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK);
    dtw_close(c);
    house_close(&h);
    house_arrays_free(values, 1, 4);
    house_arrays_free(gradients, 1, 4);
}
