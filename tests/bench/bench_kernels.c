/*
 * bench_kernels.c - how fast are the update rules, in cache and out of it?
 *
 * One thread applies a rule again and again to one variable. GB/s counts what a rule must read and write: values and
 * gradient, the new values, and each slot twice (assign: the gradient and the values). Yardsticks, in the same run and
 * at the same size: a plain loop of w -= a * g, and memcpy. Checked: what an update leaves is finite.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "proto/base/clock.h"
#include "psd/optim/optimizer.h"

struct arrays {
    size_t n; /* elements */
    float *w, *g;
    float *slots[OPTIMIZER_MAX_SLOTS];
};

static void
fill(float *x, size_t n, float value)
{
    size_t i;

    for (i = 0; i < n; i++)
        x[i] = value;
}

static float *
allocate(size_t n, float value)
{
    float *x = dtw_alloc(n);

    if (!x)
        bench_fail("short of memory");
    fill(x, n, value);
    return x;
}

static struct optimizer
rule_of(const char *name)
{
    struct optimizer_param lr = {"lr", 1e-6f};
    struct dt_error err = {DT_OK, ""};
    struct optimizer o;

    if (optimizer_init(&o, name, &lr, optimizer_has_rate(name), &err) != DT_OK)
        bench_fail("%s: %s", name, err.text);
    return o;
}

/* Bytes a second of one call of `run`, which moves `bytes`. */
static double
measure(void (*run)(void *arg), void *arg, double bytes, double seconds)
{
    double start, span;
    uint64_t n = 0;

    run(arg); /* pages and caches */
    start = dt_now_seconds();
    do {
        run(arg);
        n++;
        span = dt_now_seconds() - start;
    } while (span < seconds);
    return (double)n * bytes / span;
}

struct update {
    struct optimizer rule;
    struct arrays *a;
    uint64_t version;
};

static void
update(void *arg)
{
    struct update *u = arg;

    optimizer_apply(&u->rule, u->a->w, u->a->w, u->a->slots, u->a->g, u->a->n, u->version++);
}

__attribute__((optimize("O3"), noinline)) static void
plain_axpy(float *restrict w, const float *restrict g, float a, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        w[i] -= a * g[i];
}

static void
axpy(void *arg)
{
    struct arrays *a = arg;

    plain_axpy(a->w, a->g, 1e-6f, a->n);
}

static void
copy(void *arg)
{
    struct arrays *a = arg;

    memcpy(a->w, a->g, a->n * sizeof(float));
    __asm__ volatile("" : : "r"(a->w) : "memory");
}

/* Whole arrays that a rule reads and writes. */
static unsigned
streams_of(const struct optimizer *o, const char *name)
{
    unsigned i, n = strcmp(name, "assign") == 0 ? 2 : 3;

    for (i = 0; i < optimizer_n_slots(o); i++)
        n += optimizer_slot_elements(o, i, 2) == 2 ? 2 : 0;
    return n;
}

static void
run_rule(struct bench *b, struct arrays *a, const char *name, double axpy_rate, double copy_rate)
{
    struct update u = {.rule = rule_of(name), .a = a};
    unsigned i, streams = streams_of(&u.rule, name);
    double rate;

    fill(a->w, a->n, 0.5f);
    for (i = 0; i < optimizer_n_slots(&u.rule); i++)
        a->slots[i] =
            allocate(optimizer_slot_elements(&u.rule, i, a->n), optimizer_slot_start(&u.rule, i));
    rate = measure(update, &u, (double)(streams * a->n * sizeof(float)), b->seconds);
    if (!isfinite(a->w[0]) || !isfinite(a->w[a->n - 1]))
        bench_fail("%s: %zu elements: the values are not finite", name, a->n);
    for (i = 0; i < optimizer_n_slots(&u.rule); i++)
        dtw_free(a->slots[i], optimizer_slot_elements(&u.rule, i, a->n));
    bench_row(b, json_pack("{s:s, s:I, s:i, s:f, s:f, s:f}", "rule", name, "elements",
                           (json_int_t)a->n, "streams", (int)streams, "GB/s", rate / 1e9, "to axpy",
                           rate / axpy_rate, "to memcpy", rate / copy_rate));
}

static void
run_size(struct bench *b, size_t n)
{
    struct arrays a = {.n = n, .w = allocate(n, 0.5f), .g = allocate(n, 0.01f)};
    double axpy_rate = measure(axpy, &a, (double)(3 * n * sizeof(float)), b->seconds);
    double copy_rate = measure(copy, &a, (double)(2 * n * sizeof(float)), b->seconds);
    const char *name;
    unsigned i;

    for (i = 0; (name = optimizer_name_at(i)) != NULL; i++)
        run_rule(b, &a, name, axpy_rate, copy_rate);
    dtw_free(a.w, n);
    dtw_free(a.g, n);
}

int
main(int argc, char **argv)
{
    struct bench b;

    bench_init(&b, BENCH_SECONDS | BENCH_MAX_MIB, argc, argv);
    run_size(&b, 4096); /* every array in the first caches */
    run_size(&b, (size_t)(b.max_mib < 64 ? b.max_mib : 64) << 18); /* out of all caches */
    bench_finish(&b);
    return 0;
}
