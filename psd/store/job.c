/*
 * job.c - a shard's replica of a job. Runs on the shard's thread; job_shared has atomics only.
 */
#include "psd/store/job.h"

#include <stdlib.h>
#include <string.h>

const char *const job_counter_names[JOB_N_COUNTERS] = {
    [JOB_PUSHES] = "pushes",
    [JOB_APPLIED] = "applied",
    [JOB_ACCUMULATED] = "accumulated",
    [JOB_STALE] = "stale",
    [JOB_DUPLICATE] = "duplicate",
    [JOB_AHEAD] = "ahead",
    [JOB_REFUSED] = "refused",
    [JOB_PARTIAL] = "partial",
    [JOB_NOT_FINITE] = "not_finite",
    [JOB_DROPPED] = "dropped",
    [JOB_PULLS] = "pulls",
    [JOB_LOST] = "lost",
    [JOB_JOINED] = "joined",
    [JOB_LEFT] = "left",
    [JOB_PUSHED_BYTES] = "pushed_bytes",
    [JOB_PULLED_BYTES] = "pulled_bytes",
};

struct job_shared *
job_shared_create(void)
{
    struct job_shared *s = calloc(1, sizeof(*s));

    if (s)
        atomic_init(&s->stop_step, JOB_NO_STOP);
    return s;
}

void
job_shared_destroy(struct job_shared *s)
{
    if (!s)
        return;
    declared_destroy(s->declared);
    free(s);
}

static void
raise(_Atomic uint64_t *at, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(at, memory_order_relaxed);

    while (seen < value && !atomic_compare_exchange_weak(at, &seen, value))
        ;
}

void
job_shared_raise_step(struct job_shared *s, uint64_t step)
{
    raise(&s->step, step);
}

void
job_shared_raise_clock(struct job_shared *s, uint32_t rank, uint64_t clock)
{
    raise(&s->clocks[rank], clock);
}

struct job *
job_create(uint64_t id, const char *name, const struct dt_job_params *params,
           struct job_shared *shared, struct dt_pool *pool)
{
    struct job *job = calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    job->id = id;
    strncpy(job->name, name, DT_MAX_NAME);
    job->params = *params;
    job->shared = shared;
    job->hold = JOB_NO_HOLD;
    job->pool = pool;
    if (!membership_init(&job->membership, params->workers)) {
        free(job);
        return NULL;
    }
    return job;
}

void
job_destroy(struct job *job)
{
    uint32_t i;

    if (!job)
        return;
    for (i = 0; i < job->n_variables; i++)
        variable_deinit(&job->variables[i]);
    free(job->variables);
    membership_deinit(&job->membership);
    setting_deinit(&job->max_staleness);
    free(job);
}

static uint32_t
count_at_home(const struct variable *v)
{
    uint32_t i, n = 0;

    for (i = 0; i < v->n_slices; i++)
        n += v->slices[i] != NULL;
    return n;
}

bool
job_declare(struct job *job, uint32_t shard)
{
    const struct declared *d = job->shared->declared;
    uint32_t i;

    if (job->variables)
        return true;
    job->variables = calloc(d->n + 1, sizeof(*job->variables));
    if (!job->variables)
        return false;
    job->n_variables = d->n;
    for (i = 0; i < d->n; i++) {
        if (!variable_init(&job->variables[i], &d->variables[i], shard, job->pool))
            return false;
        job->n_slices += count_at_home(&job->variables[i]);
    }
    return true;
}

struct slice *
job_find_slice(const struct job *job, uint32_t variable, uint32_t slice)
{
    if (variable >= job->n_variables || slice >= job->variables[variable].n_slices)
        return NULL;
    return job->variables[variable].slices[slice];
}

void
job_count(struct job *job, enum job_counter counter, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(&job->shared->counters[counter], n, memory_order_relaxed);
}
