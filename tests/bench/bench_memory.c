/*
 * bench_memory.c - how much memory does psd take at most, against what it must hold?
 *
 * A variable of 64 MiB (--max-mib, where that is less) with adam, tcp, 1 and 4 workers, some steps of push and
 * pull. "must MiB": values, slots, and in a synchronous job the accumulators; "may MiB" is a quarter more and
 * 64 MiB. Checked: every worker's values after the last step, against the same rule on one element.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "psd/optim/optimizer.h"

enum { MAX_WORKERS = 4, STEPS = 6, MODEL_MIB = 64, SLACK_MIB = 64 };
#define RATE 0x1p-10f
#define GRADIENT 0x1p-4f

struct point { /* one row */
    bool sync;
    unsigned workers;
    uint64_t elements;
    const char *endpoint;
    pthread_barrier_t barrier;
};

struct worker {
    struct point *point;
    unsigned rank;
};

static struct dtw_client *
open_client(const struct worker *w)
{
    const struct dtw_variable v = {
        .name = "w", .n_dims = 1, .shape = &w->point->elements, .optimizer = "adam", .lr = RATE};
    struct dtw_options o;

    dtw_options_init(&o);
    o.ps = &w->point->endpoint;
    o.n_ps = 1;
    o.job = "memory";
    o.rank = w->rank;
    o.workers = w->point->workers;
    o.consistency = w->point->sync ? "sync" : "async";
    return bench_open(&o, &v);
}

/* What a variable of zeros is after n equal gradients; the slots of one element. */
static float
expected_value(uint64_t n)
{
    struct optimizer_param lr = {"lr", RATE};
    float w = 0, g = GRADIENT, state[OPTIMIZER_MAX_SLOTS], *slots[OPTIMIZER_MAX_SLOTS];
    struct dt_error err = {DT_OK, ""};
    struct optimizer o;
    uint64_t version;
    unsigned i;

    if (optimizer_init(&o, "adam", &lr, 1, &err) != DT_OK)
        bench_fail("adam: %s", err.text);
    for (i = 0; i < OPTIMIZER_MAX_SLOTS; i++)
        slots[i] = &state[i];
    for (i = 0; i < optimizer_n_slots(&o); i++)
        state[i] = optimizer_slot_start(&o, i);
    for (version = 0; version < n; version++)
        optimizer_apply(&o, &w, &w, slots, &g, 1, version);
    return w;
}

/* The mean of equal gradients is that gradient, so that a synchronous step is one update. */
static void
check(const struct point *p, const float *values)
{
    uint64_t i, n = p->sync ? STEPS : STEPS * (uint64_t)p->workers;
    float expected = expected_value(n);

    for (i = 0; i < p->elements; i++) {
        if (values[i] != expected)
            bench_fail("element %llu is %.9g after %llu updates, not %.9g", (unsigned long long)i,
                       (double)values[i], (unsigned long long)n, (double)expected);
    }
}

static void *
work(void *arg)
{
    struct worker *w = arg;
    struct point *p = w->point;
    float *values = dtw_alloc(p->elements), *gradient = dtw_alloc(p->elements);
    struct dtw_client *c = open_client(w);
    struct dtw_error err = {DTW_OK, ""};
    const float *g = gradient;
    uint64_t i;

    if (!values || !gradient)
        bench_fail("short of memory");
    for (i = 0; i < p->elements; i++)
        gradient[i] = GRADIENT;
    bench_pull(c, values);
    for (i = 0; i < STEPS; i++) {
        if (dtw_step(c, &g, &values, 1, 1, NULL, &err) != DTW_OK)
            bench_fail("worker %u: %s", w->rank, err.text);
    }
    pthread_barrier_wait(&p->barrier);
    bench_pull(c, values);
    check(p, values);
    pthread_barrier_wait(&p->barrier);
    dtw_leave(c, 10000, NULL);
    dtw_close(c);
    dtw_free(values, p->elements);
    dtw_free(gradient, p->elements);
    return NULL;
}

static void
train(struct point *p)
{
    struct worker workers[MAX_WORKERS];
    pthread_t threads[MAX_WORKERS];
    unsigned i;

    pthread_barrier_init(&p->barrier, NULL, p->workers);
    for (i = 0; i < p->workers; i++) {
        workers[i] = (struct worker){.point = p, .rank = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            bench_fail("no thread for worker %u", i);
    }
    for (i = 0; i < p->workers; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&p->barrier);
}

static void
run_point(struct bench *b, bool sync, unsigned workers, unsigned mib)
{
    struct point p = {
        .sync = sync, .workers = workers, .elements = ((uint64_t)mib << 20) / sizeof(float)};
    double must = mib * (sync ? 4. : 3.), may = 1.25 * must + SLACK_MIB, peak;
    struct bench_psd psd;

    bench_psd_start(&psd, true, 0);
    p.endpoint = psd.endpoint;
    train(&p);
    peak = bench_psd_peak_mib(&psd);
    bench_row(b,
              json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f}", "consistency",
                        sync ? "sync" : "async", "workers", (int)workers, "model MiB", (int)mib,
                        "must MiB", must, "may MiB", may, "psd MiB", peak, "of may", peak / may));
    bench_psd_stop(&psd);
}

int
main(int argc, char **argv)
{
    static const unsigned workers[] = {1, MAX_WORKERS};
    unsigned i, mib;
    struct bench b;

    bench_init(&b, BENCH_MAX_MIB, argc, argv);
    mib = b.max_mib < MODEL_MIB ? b.max_mib : MODEL_MIB;
    for (i = 0; i < 2; i++) {
        run_point(&b, true, workers[i], mib);
        run_point(&b, false, workers[i], mib);
    }
    bench_finish(&b);
    return 0;
}
