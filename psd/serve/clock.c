/*
 * clock.c - the job's global step: CLOCK, WAIT_STEP, SET stop_step. Shard 0.
 *
 * In a synchronous job the step is the largest version; only a ps task without slices learns it by
 * CLOCK. In an asynchronous job it is the number of finished worker steps: each worker says its own
 * count (absolute, so that a repeated CLOCK does no harm), the job adds them up.
 *
 * In ssp a CLOCK may carry the worker's clock (psd/store/clock.h), too: it goes on without a push. The answer comes
 * when all shards know.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire/set.h"
#include "psd/serve/call.h"
#include "psd/serve/control.h"

#define MAX_CLOCK (1ull << 48)

static void
advance(struct control_job *job, uint32_t rank, uint64_t clock)
{
    const struct declared *d = job->shared->declared;
    struct worker *w = &job->workers[rank];

    if (job->view->job->params.consistency == DT_SYNC) {
        if (d && d->n_slices == 0)
            job_shared_raise_step(job->shared, clock);
        return;
    }
    if (clock <= w->clock)
        return;
    w->step_idle = false; /* whoever waits, it is not for want of this worker's steps */
    job_shared_raise_step(job->shared, view_step(job->view) + (clock - w->clock));
    w->clock = clock;
}

static void
clock_is_known(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);

    (void)now;
    if (!job || p->status != DT_OK)
        reply_status(out, &p->to, job ? p->status : DT_R_NO_JOB, "the clock was not taken", 0);
    else
        reply_step(out, &p->to, view_step(job->view), atomic_load(&job->shared->stop_step));
}

static void
post_clock(struct call *c, const struct control_job *job, uint64_t clock)
{
    struct mail *m = mail_create(MAIL_CLOCK, job->id);
    struct pending *p = pending_create(clock_is_known, &c->to, job->id);

    if (!m || !p)
        abort();
    m->rank = c->session->rank;
    m->step = clock;
    post_all(c->shard, m, p, c->now, c->out);
}

void
handle_clock(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_step_msg m;

    if (!job || !call_require_present(c, job) || !call_require_open(c))
        return;
    if (dt_step_decode(&c->head, &m) != DT_OK || m.step > MAX_CLOCK || m.clock > DT_MAX_CLOCK) {
        reply_status(c->out, &c->to, DT_R_MALFORMED, "CLOCK: not a step", 0);
        return;
    }
    advance(job, c->session->rank, m.step);
    if (m.clock && view_is_ssp(job->view))
        post_clock(c, job, m.clock);
    else
        reply_step(c->out, &c->to, view_step(job->view), atomic_load(&job->shared->stop_step));
    control_wake_steps(job, c->out);
}

/* Nobody is there, or expected, who takes steps: all that are here wait for one. */
static bool
is_hopeless(const struct control_job *job)
{
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        const struct worker *w = &job->workers[r];

        if (w->known &&
            (w->state == WORKER_MISSING || (worker_is_live(w) && !(w->step_waits && w->step_idle))))
            return false;
    }
    return true;
}

static bool
is_due(const struct control_job *job, uint32_t rank, bool hopeless)
{
    const struct worker *w = &job->workers[rank];

    if (w->step_awaited == DT_NO_VERSION)
        return hopeless; /* this is what it waits for */
    if (w->step_awaited <= view_step(job->view))
        return true;
    if (w->step_awaited > atomic_load(&job->shared->stop_step))
        return true; /* the others stop before */
    if (hopeless)
        dt_log(DT_LOG_NOTICE,
               "job %s: nobody is there to bring the global step to %llu: rank %u waits no longer",
               job->view->job->name, (unsigned long long)w->step_awaited, rank);
    return hopeless;
}

void
control_set_step_wait(struct control_job *job, struct worker *w, bool waits)
{
    job->n_step_waits += (uint32_t)waits - (uint32_t)w->step_waits;
    w->step_waits = waits;
}

/* Each CLOCK comes here: with nobody waiting it costs nothing, however many workers there are. */
void
control_wake_steps(struct control_job *job, struct outbox *out)
{
    uint64_t step = view_step(job->view);
    bool hopeless;
    uint32_t r;

    if (job->n_step_waits == 0)
        return;
    hopeless = is_hopeless(job);
    for (r = 0; r < job->n_workers; r++) {
        struct worker *w = &job->workers[r];

        if (!w->step_waits || !is_due(job, r, hopeless))
            continue;
        control_set_step_wait(job, w, false);
        reply_step(out, &w->step_to, step, step);
    }
}

static void
park(struct call *c, struct control_job *job, uint64_t step)
{
    struct worker *w = &job->workers[c->session->rank];
    struct dt_waiting waiting;

    if (w->step_waits && w->step_to.request != c->to.request) /* one at a time */
        reply_step(c->out, &w->step_to, view_step(job->view), view_step(job->view));
    control_set_step_wait(job, w, true);
    w->step_idle = true;
    w->step_awaited = step;
    w->step_to = c->to;
    memset(&waiting, 0, sizeof(waiting));
    waiting.reason = DT_WAIT_GLOBAL_STEP;
    waiting.step = step;
    reply_waiting(c->out, &c->to, DT_PARKED, view_step(job->view), &waiting);
}

void
handle_wait_step(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_step_msg m;

    if (!job || !call_require_present(c, job) || !call_require_open(c))
        return;
    if (dt_step_decode(&c->head, &m) != DT_OK)
        reply_status(c->out, &c->to, DT_R_MALFORMED, "WAIT_STEP: not a step", 0);
    else if (m.step != DT_NO_VERSION &&
             (view_step(job->view) >= m.step || m.step > atomic_load(&job->shared->stop_step)))
        reply_step(c->out, &c->to, view_step(job->view), view_step(job->view));
    else
        park(c, job, m.step);
}

/* The least stop step that was set counts. */
static void
set_stop(struct job_shared *s, uint64_t step)
{
    uint64_t now = atomic_load(&s->stop_step);

    while (step < now && !atomic_compare_exchange_weak(&s->stop_step, &now, step))
        ;
}

void
handle_set(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_set m;

    if (!job || !call_require_present(c, job) || !call_require_open(c))
        return;
    if (dt_set_decode(&c->head, &m) != DT_OK) {
        reply_status(c->out, &c->to, DT_R_MALFORMED, "SET: not a key and a value", 0);
        return;
    }
    if (strcmp(m.key, "stop_step") != 0) {
        reply_reject(c->out, &c->to, DT_R_BAD_VALUE, "SET: unknown key %s; known: stop_step",
                     m.key);
        return;
    }
    set_stop(job->shared, m.value);
    reply_step(c->out, &c->to, view_step(job->view), atomic_load(&job->shared->stop_step));
    control_wake_steps(job, c->out);
}
