/*
 * racy.c - locking none over real sockets: workers push to one variable through several shards at once.
 * The sums are exact where only one thread updates; else updates get lost, and how many is printed.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "house.h"

TestSuite(racy, .timeout = 240);

enum { ELEMENTS = 1000, PUSHES = 1000, IN_FLIGHT = 16, MAX_WORKERS = 4 }; /* 10^6 element updates */

static pthread_barrier_t start;

struct worker {
    struct house *house;
    unsigned rank, workers;
    double sum;
    bool approximate;
    uint64_t version;
};

static void
fill(void *arg, unsigned index, float *values, uint64_t n)
{
    (void)arg;
    (void)index;
    memset(values, 0, n * sizeof(*values));
}

static struct dtw_client *
open_worker(struct worker *w)
{
    static const uint64_t shape[] = {ELEMENTS};
    const struct dtw_variable v = {
        .name = "hot", .n_dims = 1, .shape = shape, .optimizer = "add", .lr = -1};
    struct dtw_options o;
    struct dtw_client *c;
    struct dtw_error err = {DTW_OK, ""};

    house_options(w->house, &o, w->rank, w->workers);
    o.locking = "none";
    cr_assert_eq(dtw_open(&o, &c, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_declare(c, &v, NULL, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_init(c, fill, NULL, NULL, &err), DTW_OK, "%s", err.text);
    return c;
}

/* Many pushes under way at once, so that the shards are always busy. */
static void
push_ones(struct worker *w, struct dtw_client *c, float **ones)
{
    struct dtw_handle *handles[IN_FLIGHT] = {NULL};
    struct dtw_error err = {DTW_OK, ""};
    struct dtw_result r;
    unsigned n = PUSHES / w->workers, i;

    for (i = 0; i < n + IN_FLIGHT; i++) {
        struct dtw_handle **h = &handles[i % IN_FLIGHT];

        if (*h) {
            cr_assert_eq(dtw_wait(*h, 60000, &r, &err), DTW_OK, "%s", err.text);
            cr_assert_eq(r.accumulated + r.duplicate, 1);
            w->approximate = r.approximate;
            *h = NULL;
        }
        if (i < n)
            cr_assert_eq(dtw_push(c, (const float *const *)ones, 1, 1, h, &err), DTW_OK, "%s",
                         err.text);
    }
}

static double
whole_sum(const float *x)
{
    double sum = 0;
    unsigned i;

    for (i = 0; i < ELEMENTS; i++) {
        cr_assert(isfinite(x[i]) && x[i] >= 0 && x[i] == floorf(x[i]), "element %u is %g", i,
                  (double)x[i]);
        sum += (double)x[i];
    }
    return sum;
}

static void *
train(void *arg)
{
    struct worker *w = arg;
    struct dtw_client *c = open_worker(w);
    float **values = house_arrays(1, ELEMENTS, 0), **ones = house_arrays(1, ELEMENTS, 1);
    struct dtw_error err = {DTW_OK, ""};

    house_pull(c, values, 0);
    pthread_barrier_wait(&start);
    push_ones(w, c, ones);
    pthread_barrier_wait(&start);
    house_pull(c, values, 0);
    w->sum = whole_sum(values[0]);
    w->version = dtw_worker_step(c);
    cr_assert_eq(dtw_leave(c, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(c);
    house_arrays_free(values, 1, ELEMENTS);
    house_arrays_free(ones, 1, ELEMENTS);
    return NULL;
}

/* The sum of all elements in the end, the same for all workers. */
static double
run(unsigned n_workers, unsigned n_shards)
{
    struct house h;
    struct worker w[MAX_WORKERS];
    pthread_t threads[MAX_WORKERS];
    unsigned i;

    house_open(&h, n_shards, 32);
    h.consistency = "async";
    pthread_barrier_init(&start, NULL, n_workers);
    for (i = 0; i < n_workers; i++) {
        w[i] = (struct worker){.house = &h, .rank = i, .workers = n_workers};
        cr_assert_eq(pthread_create(&threads[i], NULL, train, &w[i]), 0);
    }
    for (i = 0; i < n_workers; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < n_workers; i++) {
        cr_assert(w[i].approximate);
        cr_assert_eq(w[i].sum, w[0].sum);
        cr_assert_eq(w[i].version, PUSHES, "the version counts pushes, lost updates too");
    }
    pthread_barrier_destroy(&start);
    house_close(&h);
    return w[0].sum;
}

Test(racy, one_worker_is_exact)
{
    cr_assert_eq(run(1, 3), (double)ELEMENTS * PUSHES);
}

Test(racy, one_shard_is_exact)
{
    cr_assert_eq(run(4, 1), (double)ELEMENTS * PUSHES);
}

Test(racy, several_shards_lose_updates_and_nothing_else)
{
    double sum = run(4, 4);

    cr_assert(sum > 0 && sum <= (double)ELEMENTS * PUSHES, "%g", sum);
    fprintf(stderr, "locking none, 4 workers on 4 shards: %.4f %% of 10^6 element updates lost\n",
            100 - sum / ELEMENTS / PUSHES * 100);
}
