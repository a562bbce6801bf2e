/*
 * lease.c - what time does to jobs: leases, start-timeout, suspension. Runs on shard 0's thread, by
 * tick. All spans are in psd's own running time: time in which psd did not turn does not count.
 */
#include <stdio.h>

#include "psd/serve/control.h"

#define NAME_MISSING_MS 10000
#define ABANDONED_MS 600000

static bool
lease_is_over(const struct shard *shard, const struct control_job *job, uint32_t rank)
{
    int64_t seen = atomic_load(&job->shared->last_seen_ms[rank]);

    return worker_is_live(&job->workers[rank]) &&
           shard_running_ms(shard) - seen > job->view->job->params.lease_ms;
}

/* A failed job loses its workers without a word: they have been told. */
static void
forget_silent(struct shard *shard, struct control_job *job)
{
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        if (lease_is_over(shard, job, r))
            job->workers[r].state = WORKER_LOST;
    }
}

static void
check_leases(struct shard *shard, struct control_job *job, int64_t now, struct outbox *out)
{
    int64_t lease = job->view->job->params.lease_ms;
    char why[64];
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        if (!lease_is_over(shard, job, r))
            continue;
        snprintf(why, sizeof(why), "was silent for its lease of %lld ms", (long long)lease);
        control_lose(shard, job, r, why, now, out);
    }
}

static uint32_t
list_missing(const struct control_job *job, char *text, size_t bytes)
{
    uint32_t r, n = 0;
    size_t used = 0;

    text[0] = 0;
    for (r = 0; r < job->n_workers; r++) {
        if (!job->workers[r].known || job->workers[r].state != WORKER_MISSING)
            continue;
        if (used + 16 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%u", n ? ", " : "", r);
        n++;
    }
    return n;
}

static void
give_up_missing(struct shard *shard, struct control_job *job, int64_t now, struct outbox *out)
{
    char why[96];
    uint32_t r;

    snprintf(why, sizeof(why), "did not come within the start-timeout of %lld ms",
             (long long)job->view->job->params.start_timeout_ms);
    for (r = 0; r < job->n_workers; r++) {
        if (job->workers[r].known && job->workers[r].state == WORKER_MISSING)
            control_lose(shard, job, r, why, now, out);
    }
}

static void
check_start(struct shard *shard, struct control_job *job, int64_t now, struct outbox *out)
{
    int64_t timeout = job->view->job->params.start_timeout_ms;
    int64_t running = shard_running_ms(shard);
    char ranks[256];

    if (job->start_missed)
        return;
    if (timeout > 0 && running - job->opened_ms >= timeout) {
        job->start_missed = true;
        give_up_missing(shard, job, now, out);
        return;
    }
    if (running - job->named_ms < NAME_MISSING_MS)
        return;
    job->named_ms = running;
    if (list_missing(job, ranks, sizeof(ranks)) > 0)
        dt_log(DT_LOG_NOTICE, "job %s waits for rank %s to start (%lld s)", job->view->job->name,
               ranks, (long long)(running - job->opened_ms) / 1000);
}

static void
check_suspended(struct shard *shard, struct control_job *job)
{
    if (!control_is_suspended(job)) {
        job->suspended_ms = -1;
        return;
    }
    if (job->suspended_ms >= 0)
        return;
    job->suspended_ms = shard_running_ms(shard);
    dt_log(DT_LOG_NOTICE, "job %s is suspended: no worker is there; its values stay",
           job->view->job->name);
}

/* Nobody is there and nobody ever declared a variable: nothing would be lost. */
static bool
is_abandoned(const struct shard *shard, const struct control_job *job)
{
    return job->suspended_ms >= 0 && !job->shared->declared &&
           shard_running_ms(shard) - job->suspended_ms > ABANDONED_MS;
}

void
control_tick(struct shard *shard, int64_t now, struct outbox *out)
{
    struct control_job *job, *next;

    for (job = shard->control->jobs; job; job = next) {
        next = job->next;
        if (job->closing || job->view->job->state == JOB_COMPLETE)
            continue;
        if (job->view->job->state == JOB_FAILED) {
            forget_silent(shard, job);
            continue;
        }
        check_leases(shard, job, now, out);
        check_start(shard, job, now, out);
        check_suspended(shard, job);
        control_wake_steps(job, out);
        if (is_abandoned(shard, job))
            control_close(shard, job, now, out);
    }
}

enum once_state
shard_once_state(const struct shard *shard, int64_t now)
{
    const struct control_job *job;
    enum once_state state = ONCE_RUNNING;

    (void)now;
    if (shard->control->pendings) /* an answer is still to come, LEAVE's among them */
        return ONCE_RUNNING;
    for (job = shard->control->jobs; job; job = job->next) {
        int64_t span;

        if (job->closing)
            return ONCE_RUNNING;
        if (job->view->job->state == JOB_COMPLETE) {
            if (state == ONCE_RUNNING)
                state = ONCE_COMPLETE;
            continue;
        }
        if (job->view->job->state == JOB_FAILED && control_n_live(job) == 0) {
            state = ONCE_SUSPENDED;
            continue;
        }
        span = job->view->job->params.start_timeout_ms;
        if (span <= 0)
            span = shard->shared->config.once_suspend_ms;
        if (job->suspended_ms < 0 || shard_running_ms(shard) - job->suspended_ms < span)
            return ONCE_RUNNING;
        state = ONCE_SUSPENDED;
    }
    return state;
}
