/*
 * control.c - jobs and workers as shard 0 keeps them. Runs on shard 0's thread.
 */
#include "psd/serve/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "proto/base/plural.h"
#define MAX_JOBS 1024

struct control *
control_create(void)
{
    return calloc(1, sizeof(struct control));
}

static void
job_free(struct shard *shard, struct control_job *job)
{
    LL_DELETE(shard->control->jobs, job);
    shard->control->n_jobs--;
    job_shared_destroy(job->shared);
    free(job->workers);
    free(job->sets);
    free(job->nonfinite);
    free(job);
}

void
control_destroy(struct shard *shard)
{
    if (!shard->control)
        return;
    pending_destroy_all(shard);
    while (shard->control->jobs)
        job_free(shard, shard->control->jobs);
    free(shard->control);
    shard->control = NULL;
}

struct control_job *
control_find(const struct shard *shard, uint64_t id)
{
    struct control_job *job;

    for (job = shard->control->jobs; job; job = job->next) {
        if (job->id == id && !job->closing)
            return job;
    }
    return NULL;
}

struct control_job *
control_find_name(const struct shard *shard, const char *name)
{
    struct control_job *job;

    for (job = shard->control->jobs; job; job = job->next) {
        if (!job->closing && !strcmp(job->view->job->name, name))
            return job;
    }
    return NULL;
}

static struct mail *
open_mail(const struct control_job *job, const struct dt_hello *hello,
          const struct dt_job_params *params)
{
    struct mail *m = mail_create(MAIL_OPEN, job->id);

    if (!m)
        return NULL;
    memcpy(m->text, hello->job, sizeof(hello->job));
    m->params = *params;
    m->shared = job->shared;
    return m;
}

static bool
expect_workers(struct control_job *job, uint32_t n)
{
    uint32_t r;

    if (!control_require_worker(job, n - 1))
        return false;
    for (r = 0; r < n; r++)
        job->workers[r].known = true;
    return true;
}

struct control_job *
control_open(struct shard *shard, const struct dt_hello *hello, const struct dt_job_params *params,
             int64_t now, struct outbox *out, struct dt_error *err)
{
    struct control_job *job = NULL;
    struct mail *m = NULL;

    if (shard->control->n_jobs >= MAX_JOBS) {
        dt_fail(err, DT_R_QUOTA, "psd holds %d jobs already, the most that it takes", MAX_JOBS);
        return NULL;
    }
    job = calloc(1, sizeof(*job));
    if (!job)
        goto fail;
    job->id = ++shard->control->next_job;
    job->shared = job_shared_create();
    if (job->shared)
        atomic_store(&job->shared->staleness_bound, (uint64_t)params->staleness_bound);
    job->grant_rank = DT_NO_RANK;
    job->opened_life = shard->control->last_life;
    job->task = hello->task;
    job->opened_ms = job->named_ms = shard_running_ms(shard);
    job->suspended_ms = -1;
    if (!job->shared || !expect_workers(job, params->workers))
        goto fail;
    m = open_mail(job, hello, params);
    if (!m)
        goto fail;
    LL_PREPEND(shard->control->jobs, job);
    shard->control->n_jobs++;
    post_all(shard, m, NULL, now, out);
    job->view = view_find(shard, job->id);
    if (!job->view)
        abort(); /* out of memory for a few hundred bytes while shards already have the job */
    dt_log(DT_LOG_INFO, "job %s opened: %u worker%s expected", hello->job, params->workers,
           dt_plural(params->workers));
    return job;
fail:
    if (job) {
        job_shared_destroy(job->shared);
        free(job->workers);
        free(job);
    }
    dt_fail(err, DT_R_QUOTA, "psd is short of memory");
    return NULL;
}

static void
closed(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job;

    (void)now;
    (void)out;
    LL_SEARCH_SCALAR(shard->control->jobs, job, id, p->job_id);
    if (job)
        job_free(shard, job);
}

void
control_close(struct shard *shard, struct control_job *job, int64_t now, struct outbox *out)
{
    struct mail *m = mail_create(MAIL_CLOSE, job->id);
    struct pending *p = pending_create(closed, NULL, job->id);

    if (!m || !p)
        abort();
    dt_log(DT_LOG_INFO, "job %s is dropped", job->view->job->name);
    job->closing = true;
    job->view = NULL;
    post_all(shard, m, p, now, out);
}

struct worker *
control_require_worker(struct control_job *job, uint32_t rank)
{
    struct worker *w;

    if (rank < job->n_workers)
        return &job->workers[rank];
    w = realloc(job->workers, (rank + 1) * sizeof(*w));
    if (!w)
        return NULL;
    memset(w + job->n_workers, 0, (rank + 1 - job->n_workers) * sizeof(*w));
    job->workers = w;
    job->n_workers = rank + 1;
    return &w[rank];
}

bool
worker_is_live(const struct worker *w)
{
    return w->known && (w->state == WORKER_JOINING || w->state == WORKER_MEMBER);
}

uint32_t
control_n_live(const struct control_job *job)
{
    uint32_t r, n = 0;

    for (r = 0; r < job->n_workers; r++)
        n += worker_is_live(&job->workers[r]);
    return n;
}

bool
control_is_suspended(const struct control_job *job)
{
    return job->view->job->state == JOB_OPEN && job->came && !job->completing &&
           control_n_live(job) == 0;
}

static void
set_state(struct shard *shard, struct control_job *job, enum job_state state, const char *text,
          struct pending *p, int64_t now, struct outbox *out)
{
    struct mail *m = mail_create(MAIL_STATE, job->id);

    if (!m)
        abort();
    m->state = state;
    strncpy(m->text, text, sizeof(m->text) - 1);
    post_all(shard, m, p, now, out);
}

void
control_refuse_waits(struct control_job *job, enum dt_status status, const char *text,
                     struct outbox *out)
{
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        struct worker *w = &job->workers[r];

        if (w->init_waits)
            reply_status(out, &w->init_to, status, text, 0);
        if (w->step_waits)
            reply_status(out, &w->step_to, status, text, 0);
        w->init_waits = false;
        control_set_step_wait(job, w, false);
    }
}

void
control_fail(struct shard *shard, struct control_job *job, const char *reason, int64_t now,
             struct outbox *out)
{
    if (job->view->job->state != JOB_OPEN)
        return;
    dt_log(DT_LOG_ERR, "job %s failed: %s", job->view->job->name, reason);
    control_refuse_waits(job, DT_R_JOB_FAILED, reason, out);
    set_state(shard, job, JOB_FAILED, reason, NULL, now, out);
}

static bool
is_over(const struct control_job *job)
{
    bool left = false;
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        const struct worker *w = &job->workers[r];

        if (!w->known)
            continue;
        if (w->state == WORKER_MISSING || worker_is_live(w))
            return false;
        left = left || w->state == WORKER_LEFT;
    }
    return left;
}

bool
control_complete(struct shard *shard, struct control_job *job, struct pending *p, int64_t now,
                 struct outbox *out)
{
    if (job->completing || job->view->job->state != JOB_OPEN || !is_over(job))
        return false;
    job->completing = true;
    dt_log(DT_LOG_INFO, "job %s is complete at step %llu", job->view->job->name,
           (unsigned long long)view_step(job->view));
    control_refuse_waits(job, DT_R_JOB_COMPLETE, "the job is complete", out);
    set_state(shard, job, JOB_COMPLETE, "the job is complete", p, now, out);
    return true;
}

static void
strike(struct shard *shard, struct control_job *job, uint32_t rank, int64_t now, struct outbox *out)
{
    struct mail *m = mail_create(MAIL_STRIKE, job->id);

    if (!m)
        abort();
    m->rank = rank;
    post_all(shard, m, NULL, now, out);
}

void
control_turn_away(struct shard *shard, struct control_job *job, uint32_t rank, int64_t now,
                  struct outbox *out)
{
    struct worker *w = &job->workers[rank];
    struct mail *m;

    if (!worker_is_live(w) || w->declared)
        return;
    m = mail_create(MAIL_TURN_AWAY, job->id);
    if (!m)
        abort();
    m->rank = rank;
    post_all(shard, m, NULL, now, out);
    dt_log(DT_LOG_NOTICE, "job %s: rank %u declares other variables and is turned away",
           job->view->job->name, rank);
    w->turned_away = true;
    w->known = w->was_known;
    w->state = w->was;
    w->host[0] = '\0';
    w->pid = 0;
}

bool
control_is_turned_away(const struct control_job *job, uint32_t rank)
{
    return rank < job->n_workers && job->workers[rank].turned_away;
}

void
control_lose(struct shard *shard, struct control_job *job, uint32_t rank, const char *why,
             int64_t now, struct outbox *out)
{
    struct worker *w = &job->workers[rank];
    char reason[DT_MAX_TEXT];

    snprintf(reason, sizeof(reason), "rank %u %s", rank, why);
    dt_log(DT_LOG_WARNING, "job %s: %s", job->view->job->name, reason);
    w->state = WORKER_LOST;
    w->init_waits = false;
    control_set_step_wait(job, w, false);
    job_count(job->view->job, JOB_LOST, 1);
    if (job->view->job->params.on_loss == DT_ON_LOSS_FAIL)
        control_fail(shard, job, reason, now, out);
    strike(shard, job, rank, now, out);
    if (job->grant_rank == rank)
        control_pass_grant(shard, job, now, out);
    control_complete(shard, job, NULL, now, out);
}
