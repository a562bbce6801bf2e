/*
 * library.c - libdtworker against a real psd over real sockets, in one process.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "house.h"

TestSuite(library, .timeout = 240);

struct worker {
    struct house *house;
    unsigned rank, workers, n;
    uint64_t elements, steps;
    float gradient;
    float result; /* the first element of the last variable at the end */
};

static void *
train(void *arg)
{
    struct worker *w = arg;
    uint64_t step;
    struct dtw_client *c = house_worker(w->house, w->rank, w->workers, w->n, w->elements, &step);
    float **values = house_arrays(w->n, w->elements, 0);
    float **gradients = house_arrays(w->n, w->elements, w->gradient);
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_result result;

    house_pull(c, values, step);
    for (; step < w->steps; step = result.step) {
        cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 10, 1, &result, &err),
                     DTW_OK, "%s", err.text);
        cr_assert_eq(result.accumulated + result.duplicate, result.n_slices);
        cr_assert_eq(result.step, step + 1);
    }
    w->result = values[w->n - 1][w->elements - 1];
    cr_assert_eq(dtw_global_step(c), w->steps);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_arrays_free(values, w->n, w->elements);
    house_arrays_free(gradients, w->n, w->elements);
    return NULL;
}

static void
train_together(unsigned workers, unsigned shards, unsigned window, unsigned n, uint64_t elements,
               uint64_t steps)
{
    struct house h;
    struct worker w[8];
    pthread_t threads[8];
    unsigned i;
    float sum = 0;

    house_open(&h, shards, window);
    for (i = 0; i < workers; i++) {
        w[i] = (struct worker){&h, i, workers, n, elements, steps, (float)(i + 1), 0};
        sum += (float)(i + 1);
        cr_assert_eq(pthread_create(&threads[i], NULL, train, &w[i]), 0);
    }
    for (i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < workers; i++)
        cr_assert_float_eq(w[i].result, -sum / (float)workers * (float)steps, 1e-2, "rank %u: %g",
                           i, (double)w[i].result);
    house_close(&h);
}

Test(library, four_workers_count_every_gradient_once)
{
    train_together(4, 3, 32, 5, 10, 200);
}

Test(library, a_variable_of_many_slices_with_a_small_window)
{
    train_together(2, 2, 4, 2, 9 * 262144 + 5, 6);
}

Test(library, hundreds_of_small_variables_share_messages)
{
    train_together(2, 3, 8, 300, 3, 20);
}

/* Another thread of the same client asks while the first one waits: the driver token passes. */
struct asker {
    struct dtw_client *client;
    atomic_bool stop;
    unsigned n;
};

static void *
ask(void *arg)
{
    struct asker *a = arg;
    struct dtw_error err = {DTW_OK, ""};
    uint64_t rounds;

    while (!atomic_load(&a->stop)) {
        cr_assert_eq(dtw_stats(a->client, "rounds", 10000, &rounds, &err), DTW_OK, "%s", err.text);
        a->n++;
    }
    return NULL;
}

Test(library, two_threads_share_a_client)
{
    struct house h;
    struct asker a;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};
    float **values = house_arrays(1, 100, 0), **gradients = house_arrays(1, 100, 1);
    pthread_t thread;
    uint64_t step, i;

    house_open(&h, 2, 32);
    c = house_worker(&h, 0, 1, 1, 100, &step);
    house_pull(c, values, 0);
    a = (struct asker){.client = c};
    cr_assert_eq(pthread_create(&thread, NULL, ask, &a), 0);
    for (i = 0; i < 300; i++)
        cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 1, 1, NULL, &err), DTW_OK,
                     "%s", err.text);
    atomic_store(&a.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(values[0][99], -300);
    cr_assert_gt(a.n, 0);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK);
    dtw_close(c);
    house_close(&h);
    house_arrays_free(values, 1, 100);
    house_arrays_free(gradients, 1, 100);
}

Test(library, not_finite_changes_nothing)
{
    struct house h;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};
    float **values = house_arrays(2, 8, 0), **gradients = house_arrays(2, 8, 1);
    uint64_t step;

    house_open(&h, 2, 32);
    c = house_worker(&h, 0, 1, 2, 8, &step);
    house_pull(c, values, 0);
    gradients[1][7] = INFINITY;
    cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 1, 1, NULL, &err),
                 DTW_NOT_FINITE);
    house_pull(c, values, 0);
    cr_assert_eq(values[0][0], 0, "not even the variable before it");
    cr_assert_eq(dtw_worker_step(c), 0);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK);
    dtw_close(c);
    house_close(&h);
    house_arrays_free(values, 2, 8);
    house_arrays_free(gradients, 2, 8);
}

Test(library, a_pull_that_waits_can_be_cancelled_and_interrupted)
{
    struct house h;
    struct dtw_client *c;
    struct dtw_handle *pull;
    struct dtw_error err = {DTW_OK, ""};
    float **values = house_arrays(1, 8, 0);
    uint64_t step;

    house_open(&h, 1, 32);
    c = house_worker(&h, 0, 1, 1, 8, &step);
    cr_assert_eq(dtw_pull(c, values, 99, &pull, &err), DTW_OK);
    cr_assert_eq(dtw_wait(pull, 50, NULL, &err), DTW_PENDING);
    dtw_cancel(pull);
    cr_assert_eq(dtw_pull(c, values, 99, &pull, &err), DTW_OK);
    dtw_interrupt(c);
    cr_assert_eq(dtw_wait(pull, -1, NULL, &err), DTW_INTERRUPTED);
    dtw_interrupt_clear(c);
    house_pull(c, values, 0);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_close(&h);
    house_arrays_free(values, 1, 8);
}

Test(library, a_copy_frees_the_buffers_at_once_and_abstaining_moves_on)
{
    struct house h;
    struct dtw_client *c;
    struct dtw_handle *push;
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_result result;
    float **values = house_arrays(1, 4, 0), **gradients = house_arrays(1, 4, 2);
    uint64_t step;

    house_open(&h, 1, 32);
    c = house_worker(&h, 0, 1, 1, 4, &step);
    house_pull(c, values, 0);
    cr_assert_eq(dtw_push_copy(c, (const float *const *)gradients, 1, 1, &push, &err), DTW_OK);
    gradients[0][0] = 1000;
    cr_assert_eq(dtw_wait(push, 10000, &result, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(result.accumulated + result.duplicate, 1);
    house_pull(c, values, 1);
    cr_assert_eq(values[0][0], -2);
    cr_assert_eq(dtw_step(c, NULL, values, 0, 0, &result, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(result.step, 2);
    cr_assert_eq(values[0][0], -2);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK);
    dtw_close(c);
    house_close(&h);
    house_arrays_free(values, 1, 4);
    house_arrays_free(gradients, 1, 4);
}
