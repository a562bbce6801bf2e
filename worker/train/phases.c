/*
 * phases.c - a stopwatch of phases.
 *
 * Invariant: every moment since phases_start counts in one phase. Threads: the loop's alone.
 */
#include "worker/train/phases.h"

#include <math.h>

#include "proto/base/clock.h"

void
phases_start(struct phases *p)
{
    *p = (struct phases){.now = PHASE_OTHER, .since = dt_now_seconds()};
}

/* What an exchange of `seconds` was: its thread's work is the push. */
static void
divide(struct phases *p, double seconds)
{
    double work = dt_thread_seconds() - p->cpu_since;

    work = work < 0 ? 0 : work > seconds ? seconds : work;
    p->seconds[PHASE_PUSH] += work;
    p->seconds[PHASE_WAIT] += seconds - work;
}

enum phase
phases_enter(struct phases *p, enum phase next)
{
    enum phase before = p->now;
    double now = dt_now_seconds();

    if (before == PHASE_WAIT)
        divide(p, now - p->since);
    else
        p->seconds[before] += now - p->since;
    if (next == PHASE_WAIT)
        p->cpu_since = dt_thread_seconds();
    p->now = next;
    p->since = now;
    return before;
}

bool
phases_shares(const double seconds[N_PHASES], double shares[N_PHASES])
{
    double sum = 0;

    for (unsigned i = 0; i < N_PHASES; i++)
        sum += seconds[i];
    for (unsigned i = 0; i < N_PHASES; i++)
        shares[i] = sum > 0 ? seconds[i] / sum : (double)NAN;
    return sum > 0;
}

const char *
phase_name(enum phase phase)
{
    static const char *const names[N_PHASES] = {"other", "compute", "push", "wait"};

    return names[phase];
}
