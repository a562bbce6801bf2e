/*
 * clock.c - monotonic time. Any thread.
 */
#include "proto/base/clock.h"

#include <errno.h>
#include <time.h>

int64_t
dt_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t
dt_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double
seconds_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double
dt_now_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double
dt_thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

int64_t
dt_deadline(int64_t now_ms, int64_t timeout_ms)
{
    if (timeout_ms < 0 || timeout_ms > DT_FOREVER - now_ms)
        return DT_FOREVER;
    return now_ms + timeout_ms;
}

int
dt_poll_timeout(int64_t now_ms, int64_t deadline_ms)
{
    if (deadline_ms <= now_ms)
        return 0;
    return deadline_ms - now_ms > 60000 ? 60000 : (int)(deadline_ms - now_ms);
}

void
dt_sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    if (ms <= 0)
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}
