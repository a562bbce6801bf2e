/* loop.c - the training loop without psd: the toy's closed form, stops, accuracy at epoch ends, where its time goes. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "worker/train/loop.h"

TestSuite(loop, .timeout = 80);

static struct model *
toy(void)
{
    struct model *m = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(model_create("toy", 0, 0, 1, 1, &m, &err), DT_OK, "%s", err.text);
    return m;
}

static struct loop_plan
plan_of(struct model *m, uint64_t steps, float lr)
{
    return (struct loop_plan){.algorithm = algorithm_find("local"),
                              .model = m,
                              .workers = 1,
                              .batch = 1,
                              .steps = steps,
                              .steps_per_epoch = steps,
                              .lr = lr,
                              .seed = 1,
                              .stop_fd = -1};
}

static struct loop *
run(const struct loop_plan *plan, struct loop_result *r)
{
    struct loop *l = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(loop_create(plan, &l, &err), DT_OK, "%s", err.text);
    loop_run(l, r);
    return l;
}

Test(loop, local_follows_the_closed_form_of_the_toy)
{
    struct model *m = toy();
    struct loop_plan plan = plan_of(m, 10, 1e-4f);
    struct loop_result r;
    struct loop *l = run(&plan, &r);

    cr_assert_eq(r.end, LOOP_DONE);
    cr_expect_eq(r.last.step, 10);
    cr_expect_eq(r.last.samples, 10);
    cr_expect_eq(r.accepted, 10);
    cr_expect_eq(r.unseen, 0);
    /* c_10 = 100*(1-(1-2e-4)^10) */
    const float *const *v = loop_values(l);
    cr_assert_not_null(v);
    for (int i = 0; i < 2; i++)
        cr_expect_float_eq(v[0][i] + v[1][i], 0.1998201, 1e-5, "%g", (double)(v[0][i] + v[1][i]));
    loop_destroy(l);
    model_destroy(m);
}

Test(loop, a_loss_that_is_not_finite_ends_it_and_names_the_step)
{
    struct model *m = toy();
    struct loop_plan plan = plan_of(m, 1000, 1e8f);
    struct loop_result r;
    struct loop *l = run(&plan, &r);

    cr_expect_eq(r.end, LOOP_NOT_FINITE);
    cr_expect_eq(r.status, DTW_NOT_FINITE);
    cr_expect(strstr(r.text, "--lr") != NULL, "%s", r.text);
    cr_expect_lt(r.last.step, 1000);
    loop_destroy(l);
    model_destroy(m);
}

struct seen {
    unsigned points, ends;
    int stop_at, fd;
    double accuracy;
};

static void
see(void *arg, const struct loop_point *p)
{
    struct seen *s = arg;

    s->points++;
    s->ends += p->epoch_end;
    if (p->epoch_end)
        s->accuracy = p->accuracy;
    if (s->stop_at > 0 && p->step == (uint64_t)s->stop_at)
        eventfd_write(s->fd, 1);
}

Test(loop, a_readable_stop_fd_ends_it_with_whole_values)
{
    struct model *m = toy();
    struct loop_plan plan = plan_of(m, 1000000, 1e-4f);
    struct seen seen = {.stop_at = 3, .fd = eventfd(0, EFD_CLOEXEC)};
    struct loop_result r;

    plan.stop_fd = seen.fd;
    plan.point = see;
    plan.point_arg = &seen;
    struct loop *l = run(&plan, &r);
    cr_expect_eq(r.end, LOOP_STOPPED);
    cr_expect_eq(r.last.step, 3);
    cr_expect_not_null(loop_values(l));
    loop_destroy(l);
    model_destroy(m);
    close(seen.fd);
}

/* Two classes that one feature tells apart. */
static struct dataset
line(uint64_t n, float *x, uint32_t *y)
{
    for (uint64_t i = 0; i < n; i++) {
        y[i] = (uint32_t)(i % 2);
        x[i] = y[i] ? 1.0f : -1.0f;
    }
    return (struct dataset){.n_rows = n,
                            .n_features = 1,
                            .n_classes = 2,
                            .x = x,
                            .y = y,
                            .n_dims = 1,
                            .dims = {1},
                            .scale = 1};
}

Test(loop, target_accuracy_ends_it_at_an_epoch_end)
{
    float x[21];
    uint32_t y[21];
    struct dataset d = line(21, x, y);
    struct model *m = NULL;
    struct dt_error err = {DT_OK, ""};
    struct seen seen = {0};
    struct loop_result r;

    cr_assert_eq(model_create("softmax", 1, 2, 5, 1, &m, &err), DT_OK, "%s", err.text);
    struct loop_plan plan = plan_of(m, 500, 0.5f);
    plan.train = plan.test = &d;
    plan.batch = 5;
    plan.steps_per_epoch = 5; /* 21 rows: the last batch holds one */
    plan.target_accuracy = 0.99;
    plan.point = see;
    plan.point_arg = &seen;
    struct loop *l = run(&plan, &r);
    cr_expect_eq(r.end, LOOP_DONE);
    cr_expect(r.target_reached);
    cr_expect_eq(r.last.step % 5, 0, "step %llu", (unsigned long long)r.last.step);
    cr_expect_eq(r.last.samples, r.last.step / 5 * 21);
    cr_expect_eq(r.unseen, 0);
    cr_expect_eq(seen.points, r.last.step);
    cr_expect_eq(seen.ends, r.last.step / 5);
    cr_expect_geq(seen.accuracy, 0.99);
    loop_destroy(l);
    model_destroy(m);
}

/* A psd that takes nothing but time. */
struct slow_link {
    int64_t answer_ms;
    uint64_t step;
};

static enum dtw_status
slow_declare(void *self, const struct dtw_variable *v, struct dtw_error *err)
{
    (void)self;
    (void)v;
    (void)err;
    return DTW_OK;
}

static enum dtw_status
slow_init(void *self, dtw_init_fn *fill, void *arg, uint64_t *first_step, struct dtw_error *err)
{
    (void)self;
    (void)fill;
    (void)arg;
    (void)err;
    *first_step = 0;
    return DTW_OK;
}

static enum dtw_status
slow_pull(void *self, float *const *values, uint64_t want, struct dtw_result *r,
          struct dtw_error *err)
{
    (void)self;
    (void)values;
    (void)want;
    (void)r;
    (void)err;
    return DTW_OK;
}

static enum dtw_status
slow_step(void *self, const float *const *gradients, float *const *values, uint64_t weight,
          unsigned count, struct dtw_result *r, struct dtw_error *err)
{
    struct slow_link *k = self;

    (void)gradients;
    (void)values;
    (void)weight;
    (void)count;
    (void)err;
    dt_sleep_ms(k->answer_ms);
    k->step++;
    *r = (struct dtw_result){.accumulated = 1};
    return DTW_OK;
}

static uint64_t
slow_worker_step(void *self)
{
    const struct slow_link *k = self;

    return k->step;
}

/* Seconds and shares of a training of ten steps over a psd that answers so late, by a machine that needs so long. */
static void
phases_of(int64_t answer_ms, int64_t delay_ms, double seconds[N_PHASES], double shares[N_PHASES])
{
    static const struct link_ops ops = {.declare = slow_declare,
                                        .init = slow_init,
                                        .pull = slow_pull,
                                        .step = slow_step,
                                        .worker_step = slow_worker_step};
    struct slow_link slow = {.answer_ms = answer_ms};
    struct model *m = toy();
    struct loop_plan plan = plan_of(m, 10, 1e-4f);
    struct loop_result r;

    plan.algorithm = algorithm_find("ssgd");
    plan.link = (struct link){&ops, &slow};
    plan.step_delay_ms = delay_ms;
    struct loop *l = run(&plan, &r);
    cr_assert_eq(r.end, LOOP_DONE);
    cr_assert(phases_shares(r.phases, shares));
    memcpy(seconds, r.phases, N_PHASES * sizeof(*seconds));
    loop_destroy(l);
    model_destroy(m);
}

/* What was slept is there, however slow the machine is; no more can be said of it. */
Test(loop, says_where_its_time_goes)
{
    double seconds[N_PHASES], shares[N_PHASES];

    phases_of(20, 0, seconds, shares);
    cr_expect_geq(seconds[PHASE_WAIT], 0.199, "a slow psd is waited for: %g", seconds[PHASE_WAIT]);
    cr_expect_float_eq(shares[0] + shares[1] + shares[2] + shares[3], 1, 1e-12);
    phases_of(0, 20, seconds, shares);
    cr_expect_geq(seconds[PHASE_COMPUTE], 0.199, "a slow machine computes: %g",
                  seconds[PHASE_COMPUTE]);
}

Test(loop, alone_it_waits_for_nobody)
{
    struct model *m = toy();
    struct loop_plan plan = plan_of(m, 1000, 1e-4f);
    struct loop_result r;
    struct loop *l = run(&plan, &r);

    cr_expect_gt(r.phases[PHASE_COMPUTE], 0);
    cr_expect_eq(r.phases[PHASE_WAIT], 0);
    cr_expect_eq(r.phases[PHASE_PUSH], 0);
    loop_destroy(l);
    model_destroy(m);
}
