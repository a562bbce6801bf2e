/*
 * clock.h - time. Monotonic milliseconds everywhere; nothing in the project reads the wall clock
 * except the log's time stamp.
 */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stdint.h>

#define DT_FOREVER INT64_MAX

int64_t dt_now_ms(void);        /* CLOCK_MONOTONIC */
uint64_t dt_now_ns(void);       /* the same */
double dt_now_seconds(void);    /* the same, as a double, for rates */
double dt_thread_seconds(void); /* that this thread has run on a processor */
int64_t dt_deadline(int64_t now_ms,
                    int64_t timeout_ms); /* now + timeout; timeout < 0: DT_FOREVER; no overflow */
/* The poll(2) time-out for `deadline`, clamped to [0, 60 000]. */
int dt_poll_timeout(int64_t now_ms, int64_t deadline_ms);
void dt_sleep_ms(int64_t ms); /* full length, also across EINTR */

#endif
