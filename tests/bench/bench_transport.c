/*
 * bench_transport.c - how fast do gradients go to psd and values come back, by size, transport and workers?
 *
 * Workers are threads with a client each; each has a variable of its own (sgd, asynchronous), so that nothing but the
 * transport and the update is measured. Modes: serial, one request after the other; pipelined, IN_FLIGHT requests at
 * a time. Yardsticks of the same run: up to 64 KiB bare ROUTER/DEALER with the same window (messages), above that one
 * raw stream of the same bytes by 1 MiB writes (push: applied; pull: not; push_pull: the one and then the other). GB/s
 * count one direction of push_pull. CPU us: of all threads of workers and psd, for a request. Checked: the values
 * after all updates.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "proto/base/clock.h"

enum { IN_FLIGHT = 8, MAX_WORKERS = 4, STREAM_FROM = 65536 };
#define RATE 0x1p-10f
#define GRADIENT 0x1p-4f

enum op { PUSH, PULL, PUSH_PULL, N_OPS };
static const char *const op_names[N_OPS] = {"push", "pull", "push_pull"};

struct point {
    bool tcp;
    enum op op;
    uint64_t elements;
    unsigned workers, in_flight;
    double seconds;
    struct bench_psd psd;
    const char *endpoint;
    double cpu; /* of workers and psd, while measured */
    pthread_barrier_t barrier;
};

struct worker {
    struct point *point;
    unsigned rank;
    struct dtw_client *client;
    float *gradient;
    float *values[IN_FLIGHT];
    uint64_t n;
    double span;
};

/* A job of its own, so that a request is about its variable alone. */
static void
open_client(struct worker *w)
{
    const struct dtw_variable v = {
        .name = "w", .n_dims = 1, .shape = &w->point->elements, .optimizer = "sgd", .lr = RATE};
    struct dtw_options o;
    char job[32];

    snprintf(job, sizeof(job), "worker-%u", w->rank);
    dtw_options_init(&o);
    o.ps = &w->point->endpoint;
    o.n_ps = 1;
    o.job = job;
    o.workers = 1;
    o.consistency = "async";
    w->client = bench_open(&o, &v);
}

static void
begin(struct worker *w, unsigned slot, struct dtw_handle **h)
{
    const float *g = w->gradient;
    struct dtw_error err = {DTW_OK, ""};
    enum dtw_status s = DTW_OK;

    switch (w->point->op) {
    case PUSH:
        s = dtw_push(w->client, &g, 1, 1, h, &err);
        break;
    case PULL:
        s = dtw_pull(w->client, &w->values[slot], 0, h, &err);
        break;
    case PUSH_PULL:
    case N_OPS:
        s = dtw_push_pull(w->client, &g, &w->values[slot], 1, 1, h, &err);
        break;
    }
    if (s != DTW_OK)
        bench_fail("worker %u: %s", w->rank, err.text);
}

static void
end(struct worker *w, struct dtw_handle *h)
{
    struct dtw_error err = {DTW_OK, ""};

    if (dtw_wait(h, -1, NULL, &err) != DTW_OK)
        bench_fail("worker %u: %s", w->rank, err.text);
    w->n++;
}

static void
exchange(struct worker *w, double until)
{
    struct dtw_handle *handles[IN_FLIGHT] = {NULL};
    unsigned i, under_way = 0;

    for (i = 0; i == 0 || under_way > 0; i = (i + 1) % w->point->in_flight) {
        if (handles[i]) {
            end(w, handles[i]);
            handles[i] = NULL;
            under_way--;
        }
        if (dt_now_seconds() >= until && w->n + under_way > 0) {
            if (under_way == 0)
                break;
            continue;
        }
        begin(w, i, &handles[i]);
        under_way++;
    }
}

/* Every update is -RATE * GRADIENT, a power of two: exact up to 2^24 of them. */
static void
check(struct worker *w, uint64_t pushes)
{
    float expected = -RATE * GRADIENT * (float)pushes;
    uint64_t i;

    bench_pull(w->client, w->values[0]);
    for (i = 0; pushes < 1 << 24 && i < w->point->elements; i++) {
        if (w->values[0][i] != expected)
            bench_fail("element %llu is %g after %llu pushes, not %g", (unsigned long long)i,
                       (double)w->values[0][i], (unsigned long long)pushes, (double)expected);
    }
}

static float *
allocate(uint64_t n, float value)
{
    float *x = dtw_alloc(n);
    uint64_t i;

    if (!x)
        bench_fail("short of memory");
    for (i = 0; i < n; i++)
        x[i] = value;
    return x;
}

static double
cpu_seconds(const struct point *p)
{
    return bench_cpu_seconds() + bench_psd_cpu_seconds(&p->psd);
}

static void *
work(void *arg)
{
    struct worker *w = arg;
    struct point *p = w->point;
    uint64_t warm;
    unsigned i;
    double start;

    w->gradient = allocate(p->elements, GRADIENT);
    for (i = 0; i < (p->op == PUSH ? 1 : p->in_flight); i++) /* 0 is for the check, too */
        w->values[i] = allocate(p->elements, 0);
    open_client(w);
    check(w, 0);
    exchange(w, 0); /* pages, connections */
    warm = w->n;
    w->n = 0;
    pthread_barrier_wait(&p->barrier);
    if (w->rank == 0)
        p->cpu -= cpu_seconds(p);
    start = dt_now_seconds();
    exchange(w, start + p->seconds);
    w->span = dt_now_seconds() - start;
    pthread_barrier_wait(&p->barrier);
    if (w->rank == 0)
        p->cpu += cpu_seconds(p);
    pthread_barrier_wait(&p->barrier);
    check(w, p->op == PULL ? 0 : warm + w->n);
    dtw_leave(w->client, 10000, NULL);
    dtw_close(w->client);
    dtw_free(w->gradient, p->elements);
    for (i = 0; i < IN_FLIGHT; i++)
        dtw_free(w->values[i], p->elements);
    return NULL;
}

/* Requests of all workers. */
static struct bench_rate
measure(struct point *p)
{
    struct worker workers[MAX_WORKERS];
    pthread_t threads[MAX_WORKERS];
    double n = 0, span = 0;
    unsigned i;

    pthread_barrier_init(&p->barrier, NULL, p->workers);
    for (i = 0; i < p->workers; i++) {
        workers[i] = (struct worker){.point = p, .rank = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            bench_fail("no thread for worker %u", i);
    }
    for (i = 0; i < p->workers; i++) {
        pthread_join(threads[i], NULL);
        n += (double)workers[i].n;
        span = fmax(span, workers[i].span);
    }
    pthread_barrier_destroy(&p->barrier);
    return (struct bench_rate){n / span, p->cpu / n};
}

/* Once the variable's bytes by a raw stream. */
static void
add_stream(const struct point *p, bool apply, double *time, double *cpu)
{
    size_t bytes = p->elements * sizeof(float);
    struct bench_rate r = yardstick_stream(p->tcp, bytes, apply, p->seconds);

    *time += (double)bytes / r.rate;
    *cpu += (double)bytes * r.cpu;
}

/* Requests of what stands for the point without psd. */
static struct bench_rate
yardstick(const struct point *p)
{
    double bytes = (double)p->elements * sizeof(float), time = 0, cpu = 0;

    if (bytes < STREAM_FROM)
        return yardstick_router_dealer(p->tcp, (size_t)bytes, p->in_flight, p->seconds);
    if (p->op != PULL)
        add_stream(p, true, &time, &cpu);
    if (p->op != PUSH)
        add_stream(p, false, &time, &cpu);
    return (struct bench_rate){1 / time, cpu};
}

static void
run_point(struct bench *b, struct point *p, struct bench_rate bare)
{
    double bytes = (double)p->elements * sizeof(float);
    struct bench_rate ours;

    bench_psd_start(&p->psd, p->tcp, 0);
    p->endpoint = p->psd.endpoint;
    p->cpu = 0;
    ours = measure(p);
    bench_row(b,
              json_pack("{s:s, s:s, s:I, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "transport",
                        p->tcp ? "tcp" : "ipc", "op", op_names[p->op], "bytes", (json_int_t)bytes,
                        "workers", (int)p->workers, "in flight", (int)p->in_flight, "req/s",
                        ours.rate, "GB/s", ours.rate * bytes / 1e9, "to bare",
                        ours.rate / bare.rate, "CPU us", ours.cpu * 1e6, "CPU to bare",
                        ours.cpu / bare.cpu, "psd MiB", bench_psd_peak_mib(&p->psd)));
    bench_psd_stop(&p->psd);
}

/* The largest ones are not pipelined: a request is a stream of messages by itself. */
static void
run_size(struct bench *b, bool tcp, enum op op, uint64_t bytes)
{
    static const struct {
        unsigned workers, in_flight;
    } modes[] = {{1, 1}, {1, IN_FLIGHT}, {4, IN_FLIGHT}};
    struct point p = {
        .tcp = tcp, .op = op, .elements = bytes / sizeof(float), .seconds = b->seconds};
    unsigned i;

    for (i = 0; i < 3; i++) {
        p.workers = modes[i].workers;
        p.in_flight = bytes > 4 << 20 ? 1 : modes[i].in_flight;
        if (i == 1 && p.in_flight == 1)
            continue;
        run_point(b, &p, yardstick(&p)); /* side by side: the machine's speed changes */
    }
}

static void
run_op(struct bench *b, bool tcp, enum op op)
{
    static const uint64_t sizes[] = {64,      4096,    65536,    1 << 20,
                                     4 << 20, 1 << 24, 64 << 20, 256 << 20};
    unsigned i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] <= (uint64_t)b->max_mib << 20 && (!b->bytes || b->bytes == sizes[i]))
            run_size(b, tcp, op, sizes[i]);
    }
}

int
main(int argc, char **argv)
{
    static const char *const transports[] = {"tcp", "ipc"};
    struct bench b;
    unsigned t, op;

    dtw_tune_allocation();
    bench_init(&b, BENCH_SECONDS | BENCH_MAX_MIB | BENCH_BYTES | BENCH_TRANSPORT | BENCH_ONLY, argc,
               argv);
    for (t = 0; t < 2; t++) {
        for (op = 0; op < N_OPS; op++) {
            if ((!b.transport || !strcmp(b.transport, transports[t])) &&
                bench_wants(&b, op_names[op]))
                run_op(&b, t == 0, (enum op)op);
        }
    }
    bench_finish(&b);
    return 0;
}
