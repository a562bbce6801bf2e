/*
 * bench_hot.c - many workers push to one hot variable: how does it scale with the number of shards, in
 * locking slice (one thread owns it) and none (all threads update it)?
 *
 * Workers are threads with a client each; IN_FLIGHT pushes of ones are under way, the server adds them.
 * Checked: exact sums in locking slice and with one shard, else no more than was pushed. Reported: pushes
 * and element updates a second, the ratio to locking slice with one shard, the share of lost updates.
 * Yardsticks: bare ROUTER/DEALER with the same frames and window, and the kernel alone.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "proto/base/clock.h"

enum { WORKERS = 4, IN_FLIGHT = 16 };

struct point { /* one row */
    uint64_t elements;
    unsigned n_shards;
    const char *locking;
    double seconds;
    const char *endpoint;
    pthread_barrier_t barrier;
};

struct pusher {
    struct point *point;
    unsigned rank;
    uint64_t n_pushes;
    double span, sum;
};

static struct dtw_client *
open_client(const struct pusher *p)
{
    const struct dtw_variable v = {
        .name = "hot", .n_dims = 1, .shape = &p->point->elements, .optimizer = "add", .lr = -1};
    struct dtw_options o;

    dtw_options_init(&o);
    o.ps = &p->point->endpoint;
    o.n_ps = 1;
    o.job = "hot";
    o.rank = p->rank;
    o.workers = WORKERS;
    o.consistency = "async";
    o.locking = p->point->locking;
    return bench_open(&o, &v);
}

static void
push_until(struct pusher *p, struct dtw_client *c, const float *ones, double end)
{
    struct dtw_handle *handles[IN_FLIGHT] = {NULL};
    struct dtw_error err = {DTW_OK, ""};
    unsigned i, in_flight = 0;

    for (i = 0; i == 0 || in_flight > 0; i = (i + 1) % IN_FLIGHT) {
        if (handles[i]) {
            if (dtw_wait(handles[i], -1, NULL, &err) != DTW_OK)
                bench_fail("worker %u: %s", p->rank, err.text);
            handles[i] = NULL;
            in_flight--;
            p->n_pushes++;
        }
        if (dt_now_seconds() >= end)
            continue;
        if (dtw_push(c, &ones, 1, 1, &handles[i], &err) != DTW_OK)
            bench_fail("worker %u: %s", p->rank, err.text);
        in_flight++;
    }
}

static double
whole_sum(const float *x, uint64_t n)
{
    double sum = 0;
    uint64_t i;

    for (i = 0; i < n; i++) {
        if (!isfinite(x[i]) || x[i] < 0 || x[i] != floorf(x[i]))
            bench_fail("element %llu is %g: no whole number", (unsigned long long)i, (double)x[i]);
        sum += (double)x[i];
    }
    return sum;
}

static void *
work(void *arg)
{
    struct pusher *p = arg;
    uint64_t n = p->point->elements, i;
    float *values = dtw_alloc(n), *ones = dtw_alloc(n);
    struct dtw_client *c = open_client(p);
    double start;

    if (!values || !ones)
        bench_fail("short of memory");
    for (i = 0; i < n; i++)
        ones[i] = 1;
    bench_pull(c, values);
    pthread_barrier_wait(&p->point->barrier);
    start = dt_now_seconds();
    push_until(p, c, ones, start + p->point->seconds);
    p->span = dt_now_seconds() - start;
    pthread_barrier_wait(&p->point->barrier);
    bench_pull(c, values);
    p->sum = whole_sum(values, n);
    dtw_leave(c, 10000, NULL);
    dtw_close(c);
    dtw_free(values, n);
    dtw_free(ones, n);
    return NULL;
}

/* Pushes a second; *lost: the share of element updates that are not in the sums. */
static double
measure(struct point *point, double *lost)
{
    struct pusher pushers[WORKERS];
    pthread_t threads[WORKERS];
    double n = 0, span = 0, expected;
    unsigned i;

    pthread_barrier_init(&point->barrier, NULL, WORKERS);
    for (i = 0; i < WORKERS; i++) {
        pushers[i] = (struct pusher){.point = point, .rank = i};
        if (pthread_create(&threads[i], NULL, work, &pushers[i]))
            bench_fail("no thread for worker %u", i);
    }
    for (i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        n += (double)pushers[i].n_pushes;
        span = pushers[i].span > span ? pushers[i].span : span;
    }
    pthread_barrier_destroy(&point->barrier);
    /* float counts exactly up to 2^24 */
    expected = n * (double)point->elements;
    *lost = n < 1 << 24 ? 1 - pushers[0].sum / expected : (double)NAN;
    if (*lost < 0 || pushers[0].sum <= 0)
        bench_fail("the sum is %g after %g element updates", pushers[0].sum, expected);
    if (*lost > 0 && (point->n_shards == 1 || !strcmp(point->locking, "slice")))
        bench_fail("locking %s with %u shards lost updates", point->locking, point->n_shards);
    return n / span;
}

static double
run_point(struct point *point, double *lost)
{
    struct bench_psd psd;
    double rate;

    bench_psd_start(&psd, false, point->n_shards);
    point->endpoint = psd.endpoint;
    rate = measure(point, lost);
    bench_psd_stop(&psd);
    return rate;
}

static void
run_size(struct bench *b, uint64_t elements)
{
    static const unsigned shards[] = {1, 2, 4};
    static const char *const lockings[] = {"slice", "none"};
    double bare =
        yardstick_router_dealer(false, elements * sizeof(float), IN_FLIGHT, b->seconds).rate;
    double add = yardstick_add(elements, b->seconds), one = 0, lost;
    unsigned i, k;

    for (k = 0; k < 2; k++) {
        for (i = 0; i < 3; i++) {
            struct point p = {.elements = elements,
                              .n_shards = shards[i],
                              .locking = lockings[k],
                              .seconds = b->seconds};
            double rate = run_point(&p, &lost);

            one = k == 0 && i == 0 ? rate : one;
            bench_row(b, json_pack("{s:I, s:s, s:i, s:f, s:f, s:f, s:f, s:f}", "elements",
                                   (json_int_t)elements, "locking", p.locking, "shards",
                                   (int)p.n_shards, "pushes/s", rate, "to slice,1", rate / one,
                                   "to bare zmq", rate / bare, "to kernel", rate / add, "lost %",
                                   isnan(lost) ? -1 : 100 * lost));
        }
    }
}

int
main(int argc, char **argv)
{
    struct bench b;

    bench_init(&b, BENCH_SECONDS, argc, argv);
    run_size(&b, 1024);
    run_size(&b, 65536);
    bench_finish(&b);
    return 0;
}
