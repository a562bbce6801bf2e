/*
 * ssp.c - stale synchronous parallel jobs: libdtworker against a real psd over real sockets, in one process. Every
 * worker counts its updates in an element of its own, so a pull shows how far each of the others was.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "house.h"

TestSuite(ssp, .timeout = 240);

#define WORKERS 3
#define STEPS 40
#define ELEMENTS 300000 /* two slices */

static atomic_int pushed[WORKERS]; /* at most so many pushes of a rank have begun */

struct worker {
    struct house *house;
    unsigned rank;
    int ahead; /* the largest lead seen */
};

/* Worker r counts in element r and, in the second slice, in the r-th from the end. */
static void
check(struct worker *w, float *const *values, int clock)
{
    int least = clock - (int)w->house->staleness_bound;
    unsigned r, v;

    for (r = 0; r < WORKERS; r++) {
        int begun = atomic_load(&pushed[r]);

        cr_assert_geq(begun, least, "rank %u is at %d, rank %u at %d", r, begun, w->rank, clock);
        if (clock - begun > w->ahead)
            w->ahead = clock - begun;
        for (v = 0; v < 2; v++) {
            cr_assert_geq((int)values[v][r], least, "its updates are in");
            cr_assert_geq((int)values[v][ELEMENTS - 1 - r], least, "in the second slice, too");
        }
    }
    cr_assert_eq((int)values[0][w->rank], clock, "own updates at once");
}

static void *
train(void *arg)
{
    struct worker *w = arg;
    uint64_t first;
    struct dtw_client *c = house_worker(w->house, w->rank, WORKERS, 2, ELEMENTS, &first);
    float **values = house_arrays(2, ELEMENTS, 0), **gradients = house_arrays(2, ELEMENTS, 0);
    struct dtw_error err = {DTW_OK, ""};
    int i, v;

    cr_assert_eq(first, 0);
    for (v = 0; v < 2; v++)
        gradients[v][w->rank] = gradients[v][ELEMENTS - 1 - w->rank] = -1;
    house_pull(c, values, 0);
    for (i = 1; i <= STEPS; i++) {
        if (w->rank == 1)
            usleep(5000);
        atomic_store(&pushed[w->rank], i);
        cr_assert_eq(dtw_step(c, (const float *const *)gradients, values, 1, 1, NULL, &err), DTW_OK,
                     "%s", err.text);
        check(w, values, i);
    }
    if (w->rank == 0) { /* its clock does not hold the others */
        cr_assert_eq(dtw_wait_step(c, UINT64_MAX, 60000, &err), DTW_OK, "%s", err.text);
        house_pull(c, values, 0);
        for (v = 0; v < WORKERS; v++)
            cr_assert_eq(values[1][v], STEPS, "every update once");
    }
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_arrays_free(values, 2, ELEMENTS);
    house_arrays_free(gradients, 2, ELEMENTS);
    return NULL;
}

static int
run(int64_t bound)
{
    struct house h;
    struct worker w[WORKERS];
    pthread_t threads[WORKERS];
    unsigned i;
    int ahead = 0;

    house_open(&h, 3, 32);
    h.consistency = "ssp";
    h.staleness_bound = bound;
    for (i = 0; i < WORKERS; i++) {
        atomic_store(&pushed[i], 0);
        w[i] = (struct worker){&h, i, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, train, &w[i]), 0);
    }
    for (i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        ahead = w[i].ahead > ahead ? w[i].ahead : ahead;
    }
    house_close(&h);
    return ahead;
}

Test(ssp, bound_0_keeps_all_in_step)
{
    cr_assert_eq(run(0), 0);
}

Test(ssp, bound_2_lets_the_fast_ones_lead_by_two)
{
    cr_assert_geq(run(2), 1, "the bound is used");
}
