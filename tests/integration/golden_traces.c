/*
 * golden_traces.c - the golden traces of ALGORITHMS section 3 through the real server path: two workers, which are the
 * loops of dtworker, take turns in one thread, over real sockets, at a real psd. What has no golden trace is compared
 * with its published pseudo-code (published.h) in double precision.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "house.h"
#include "published.h"
#include "worker/train/loop.h"
#include "worker/train/model_rule.h"

TestSuite(golden_traces, .timeout = 240);

#define COMMITS 6
#define WORKERS 2

/* f = (w - target)^2 / 2, the target in the model's seed; w starts at 0. */
static double
gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
         const float *const *values, float *const *gradients)
{
    float d = values[0][0] - (float)m->seed;

    (void)data;
    (void)rows;
    (void)n;
    if (gradients)
        gradients[0][0] = d;
    return (double)d * (double)d / 2;
}

static const struct model_rule quadratic = {.name = "quadratic", .gradient = gradient};

static struct model *
model_of(double target)
{
    struct model *m = calloc(1, sizeof(*m));
    uint64_t shape = 1;

    cr_assert_not_null(m);
    m->rule = &quadratic;
    m->seed = (uint64_t)target;
    model_add_variable(m, "w", 1, &shape, "zeros");
    return m;
}

struct driven { /* a worker */
    struct model *model;
    struct dtw_client *client;
    struct loop *loop;
};

static void
open_one(struct driven *d, struct house *h, const struct algorithm *row, const struct trace *t,
         unsigned rank)
{
    struct dtw_options o;
    struct dtw_error lib = {DTW_OK, ""};
    struct dt_error err = {DT_OK, ""};

    house_options(h, &o, rank, WORKERS + 1);
    cr_assert_eq(dtw_open(&o, &d->client, &lib), DTW_OK, "%s", lib.text);
    d->model = model_of(t->targets[rank % WORKERS]);
    struct loop_plan plan = {.algorithm = row,
                             .model = d->model,
                             .client = d->client,
                             .rank = rank,
                             .workers = WORKERS + 1,
                             .batch = 1,
                             .steps = 1000,
                             .steps_per_epoch = 1000,
                             .seed = 1,
                             .lr = (float)t->lr,
                             .local_lr = (float)t->lr,
                             .alpha = (float)t->alpha,
                             .momentum = (float)t->mu,
                             .window = t->window,
                             .stop_fd = -1};
    cr_assert_eq(loop_create(&plan, &d->loop, &err), DT_OK, "%s", err.text);
    loop_begin(d->loop);
}

static void
close_one(struct driven *d)
{
    struct dtw_error err = {DTW_OK, ""};

    cr_assert_eq(dtw_leave(d->client, 10000, &err), DTW_OK, "%s", err.text);
    dtw_close(d->client);
    loop_destroy(d->loop);
    model_destroy(d->model);
}

/* The centre after each commit; the third worker looks on. */
static void
drive(const struct algorithm *row, const struct trace *t, double *centre)
{
    struct driven d[WORKERS + 1];
    float value, *values[1] = {&value};
    struct house h;

    house_open(&h, 2, 32);
    h.consistency = "async";
    for (unsigned i = 0; i <= WORKERS; i++)
        open_one(&d[i], &h, row, t, i);
    for (unsigned k = 0; k < COMMITS; k++) {
        cr_assert(loop_next(d[k % WORKERS].loop), "commit %u", k);
        house_pull(d[WORKERS].client, values, 0);
        centre[k] = (double)value;
    }
    for (unsigned i = 0; i <= WORKERS; i++)
        close_one(&d[i]);
    house_close(&h);
}

static void
expect_trace(const char *what, const double *got, const double *want)
{
    for (unsigned k = 0; k < COMMITS; k++)
        cr_expect(fabs(got[k] - want[k]) <= 1e-6 * fabs(want[k]) + 1e-9,
                  "%s, commit %u: %.9g, not %.9g", what, k + 1, got[k], want[k]);
}

static struct algorithm
row_of(const char *name, unsigned profile)
{
    const struct algorithm *a = algorithm_find_profile(name, profile);

    cr_assert_not_null(a, "%s", name);
    return *a;
}

static const struct trace golden = {
    .targets = {10, 10}, .lr = .1, .alpha = .1, .mu = .9, .window = 2};

/* The table's row, and the published loop in double precision as well. */
static void
check(const char *what, const struct algorithm *row, const struct trace *t, published_fn *published,
      const double *table)
{
    double got[COMMITS], want[COMMITS];

    drive(row, t, got);
    published(t, COMMITS, want);
    expect_trace(what, got, want);
    if (table)
        expect_trace(what, got, table);
}

Test(golden_traces, dist_keras_downpour)
{
    const double table[] = {1, 2, 3.71, 5.23, 6.4251, 7.3314};
    struct algorithm row = row_of("downpour", PROFILE_DIST_KERAS);

    check("dist-keras DOWNPOUR", &row, &golden, published_downpour, table);
}

Test(golden_traces, downpour_of_the_guide_with_sgd_on_both_sides)
{
    const double table[] = {1.9, 3.8, 5.339, 6.517, 7.40259, 8.06436};
    struct algorithm row = row_of("downpour", PROFILE_GUIDE);

    row.local_optimizer = row.server_optimizer = "sgd";
    check("the guide's DOWNPOUR", &row, &golden, published_guide_downpour, table);
}

Test(golden_traces, agn_with_sgd_is_the_adag_of_dist_keras)
{
    const double table[] = {.95, 1.9, 2.75975, 3.52925, 4.21707375, 4.831795};
    struct algorithm agn = row_of("agn", PROFILE_GUIDE);
    struct algorithm adag = row_of("agn", PROFILE_DIST_KERAS);

    agn.local_optimizer = agn.server_optimizer = "sgd";
    check("AGN", &agn, &golden, published_adag, table);
    check("ADAG", &adag, &golden, published_adag, table);
}

Test(golden_traces, easgd_of_the_paper_asynchronous)
{
    const double table[] = {0, 0, .19, .361, .6517, .91504};
    struct algorithm row = row_of("aeasgd", PROFILE_PAPER);

    check("asynchronous EASGD", &row, &golden, published_easgd, table);
}

/* Targets that differ show a move to the wrong side. */
static const struct trace apart = {
    .targets = {10, 4}, .lr = .1, .alpha = .2, .mu = .5, .window = 3};

Test(golden_traces, dynsgd)
{
    struct algorithm row = row_of("dynsgd", PROFILE_DIST_KERAS);

    check("DynSGD", &row, &golden, published_dynsgd, NULL);
    check("DynSGD", &row, &apart, published_dynsgd, NULL);
}

Test(golden_traces, elastic_variants)
{
    struct algorithm aeasgd = row_of("aeasgd", PROFILE_DIST_KERAS);
    struct algorithm eamsgd = row_of("eamsgd", PROFILE_PAPER);
    struct algorithm reversed = row_of("eamsgd", PROFILE_DIST_KERAS);

    check("dist-keras AEASGD", &aeasgd, &apart, published_aeasgd, NULL);
    check("EAMSGD", &eamsgd, &apart, published_eamsgd, NULL);
    check("dist-keras EAMSGD", &reversed, &apart, published_dist_keras_eamsgd, NULL);
}

Test(golden_traces, with_a_window_of_one_batch)
{
    struct trace t = apart;
    struct algorithm downpour = row_of("downpour", PROFILE_DIST_KERAS);
    struct algorithm easgd = row_of("aeasgd", PROFILE_PAPER);

    t.window = 1;
    check("dist-keras DOWNPOUR, T 1", &downpour, &t, published_downpour, NULL);
    check("asynchronous EASGD, T 1", &easgd, &t, published_easgd, NULL);
}

struct rounds { /* a worker of a synchronous job, in a thread of its own */
    struct house *house;
    const struct algorithm *row;
    const struct trace *trace;
    unsigned rank;
    double centre; /* after the rounds */
};

static void *
run_rounds(void *arg)
{
    struct rounds *r = arg;
    struct dtw_client *client = NULL;
    struct dtw_options o;
    struct dtw_error lib = {DTW_OK, ""};
    struct dt_error err = {DT_OK, ""};
    struct model *m = model_of(r->trace->targets[r->rank]);
    struct loop *l = NULL;
    struct loop_result result;

    house_options(r->house, &o, r->rank, WORKERS);
    o.reduce = "sum";
    cr_assert_eq(dtw_open(&o, &client, &lib), DTW_OK, "%s", lib.text);
    struct loop_plan plan = {.algorithm = r->row,
                             .model = m,
                             .client = client,
                             .rank = r->rank,
                             .workers = WORKERS,
                             .batch = 1,
                             .steps = COMMITS * r->trace->window,
                             .steps_per_epoch = 1000,
                             .seed = 1,
                             .lr = (float)r->trace->lr,
                             .alpha = (float)r->trace->alpha,
                             .window = r->trace->window,
                             .stop_fd = -1};
    cr_assert_eq(loop_create(&plan, &l, &err), DT_OK, "%s", err.text);
    loop_run(l, &result);
    cr_assert_eq(result.end, LOOP_DONE, "%s", result.text);
    r->centre = (double)loop_values(l)[0][0];
    cr_assert_eq(dtw_leave(client, 10000, &lib), DTW_OK, "%s", lib.text);
    dtw_close(client);
    loop_destroy(l);
    model_destroy(m);
    return NULL;
}

static void
check_rounds(const struct trace *t)
{
    struct algorithm row = row_of("easgd", PROFILE_PAPER);
    struct rounds r[WORKERS];
    pthread_t threads[WORKERS];
    double want[COMMITS];
    struct house h;

    house_open(&h, 2, 32);
    for (unsigned i = 0; i < WORKERS; i++) {
        r[i] = (struct rounds){&h, &row, t, i, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_rounds, &r[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    house_close(&h);
    published_easgd_rounds(t, COMMITS, want);
    for (unsigned i = 0; i < WORKERS; i++)
        cr_expect(fabs(r[i].centre - want[COMMITS - 1]) <= 1e-6 * want[COMMITS - 1],
                  "rank %u: %.9g, not %.9g", i, r[i].centre, want[COMMITS - 1]);
}

Test(golden_traces, easgd_of_the_paper_in_rounds)
{
    struct trace t = apart;

    check_rounds(&t);
    t.window = 1;
    check_rounds(&t);
}
