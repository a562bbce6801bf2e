/* phases.c - a stopwatch of phases: every moment in one, an exchange divided into work and sleep. */
#include <criterion/criterion.h>
#include <math.h>

#include "proto/base/clock.h"
#include "worker/train/phases_json.h"

TestSuite(phases, .timeout = 80);

static void
work(double seconds)
{
    double start = dt_thread_seconds();

    while (dt_thread_seconds() - start < seconds)
        ;
}

Test(phases, every_moment_counts_in_one)
{
    struct phases p;
    double start = dt_now_seconds();
    double sum = 0;

    phases_start(&p);
    cr_expect_eq(phases_enter(&p, PHASE_COMPUTE), PHASE_OTHER);
    dt_sleep_ms(20);
    cr_expect_eq(phases_enter(&p, PHASE_WAIT), PHASE_COMPUTE);
    dt_sleep_ms(30);
    cr_expect_eq(phases_enter(&p, PHASE_COMPUTE), PHASE_WAIT);
    phases_enter(&p, PHASE_OTHER);
    double most = dt_now_seconds() - start;
    for (unsigned i = 0; i < N_PHASES; i++)
        sum += p.seconds[i];
    cr_expect_geq(p.seconds[PHASE_COMPUTE], 0.02);
    cr_expect_geq(sum, 0.05);
    cr_expect_leq(sum, most);
}

Test(phases, an_exchange_is_work_and_sleep)
{
    struct phases p;
    double shares[N_PHASES];

    phases_start(&p);
    phases_enter(&p, PHASE_WAIT);
    dt_sleep_ms(100);
    work(0.02);
    phases_enter(&p, PHASE_OTHER);
    cr_expect_geq(p.seconds[PHASE_WAIT], 0.09);
    cr_expect_geq(p.seconds[PHASE_PUSH], 0.02);
    cr_expect_lt(p.seconds[PHASE_PUSH], 0.1, "sleep is no work");
    cr_expect_eq(p.seconds[PHASE_COMPUTE], 0);
    cr_assert(phases_shares(p.seconds, shares));
    cr_expect_float_eq(shares[0] + shares[1] + shares[2] + shares[3], 1, 1e-12);
    cr_expect_gt(shares[PHASE_WAIT], shares[PHASE_OTHER]);
}

Test(phases, shares_go_through_json)
{
    static const double seconds[N_PHASES] = {
        [PHASE_COMPUTE] = 5, [PHASE_PUSH] = 1, [PHASE_WAIT] = 3, [PHASE_OTHER] = 1};
    static const double none[N_PHASES] = {0};
    double back[N_PHASES];
    json_t *o = phases_json(seconds), *nothing = phases_json(none);

    cr_expect_float_eq(json_real_value(json_object_get(o, "compute")), .5, 1e-12);
    cr_expect_float_eq(json_real_value(json_object_get(o, "push")), .1, 1e-12);
    cr_expect_float_eq(json_real_value(json_object_get(o, "wait")), .3, 1e-12);
    cr_expect_float_eq(json_real_value(json_object_get(o, "other")), .1, 1e-12);
    phases_from_json(back, o, 20);
    for (unsigned i = 0; i < N_PHASES; i++)
        cr_expect_float_eq(back[i], 2 * seconds[i], 1e-12);
    cr_expect(json_is_null(nothing), "without time there are no shares");
    phases_from_json(back, nothing, 20);
    phases_from_json(back, o, (double)NAN);
    for (unsigned i = 0; i < N_PHASES; i++)
        cr_expect_eq(back[i], 0);
    json_decref(nothing);
    json_decref(o);
}
