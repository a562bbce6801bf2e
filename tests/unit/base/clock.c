/*
 * clock.c - deadlines and time-outs at their edges; a sleep that signals do not shorten.
 */
#include "proto/base/clock.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/time.h>

TestSuite(clock, .timeout = 40);

Test(clock, deadlines_do_not_overflow)
{
    cr_assert_eq(dt_deadline(1000, 50), 1050);
    cr_assert_eq(dt_deadline(1000, 0), 1000);
    cr_assert_eq(dt_deadline(1000, -1), DT_FOREVER);
    cr_assert_eq(dt_deadline(1000, INT64_MAX), DT_FOREVER);
    cr_assert_eq(dt_deadline(1000, INT64_MAX - 1000), DT_FOREVER);
    cr_assert_eq(dt_deadline(1000, INT64_MAX - 1001), INT64_MAX - 1);
}

Test(clock, poll_timeouts_are_clamped)
{
    cr_assert_eq(dt_poll_timeout(1000, 1250), 250);
    cr_assert_eq(dt_poll_timeout(1000, 1000), 0);
    cr_assert_eq(dt_poll_timeout(1000, 10), 0);
    cr_assert_eq(dt_poll_timeout(1000, 61000), 60000);
    cr_assert_eq(dt_poll_timeout(1000, 61001), 60000);
    cr_assert_eq(dt_poll_timeout(1000, DT_FOREVER), 60000);
}

Test(clock, both_clocks_are_one)
{
    int64_t before = dt_now_ms();
    double seconds = dt_now_seconds();
    int64_t after = dt_now_ms();

    cr_assert_geq(seconds * 1000, (double)before);
    cr_assert_lt(seconds * 1000, (double)after + 1);
}

static volatile sig_atomic_t n_alarms;

static void
on_alarm(int sig)
{
    (void)sig;
    n_alarms = n_alarms + 1;
}

Test(clock, sleep_lasts_across_signals)
{
    struct sigaction sa = {.sa_handler = on_alarm}; /* no SA_RESTART */
    struct itimerval each = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}};
    struct itimerval none = {.it_value = {0}};
    int64_t start = dt_now_ms();

    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    dt_sleep_ms(100);
    setitimer(ITIMER_REAL, &none, NULL);
    cr_assert_gt(n_alarms, 1);
    cr_assert_geq(dt_now_ms() - start, 99);
}

Test(clock, sleep_of_nothing_returns)
{
    int64_t start = dt_now_ms();

    dt_sleep_ms(0);
    dt_sleep_ms(-5);
    cr_assert_lt(dt_now_ms() - start, 1000);
}

Test(clock, time_of_a_thread_stands_still_while_it_sleeps)
{
    double start = dt_thread_seconds();

    while (dt_thread_seconds() - start < 0.01)
        ;
    double busy = dt_thread_seconds();
    dt_sleep_ms(200);
    cr_expect_lt(dt_thread_seconds() - busy, 0.1);
}
