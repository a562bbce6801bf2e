/*
 * join.c - JOIN: the first step that counts a late worker, the same on all shards. Shard 0.
 */
#include <stdlib.h>
#include <string.h>

#include "psd/serve/call.h"
#include "psd/serve/control.h"
#include "psd/store/clock.h"

static void joined_everywhere(struct shard *shard, struct pending *p, int64_t now,
                              struct outbox *out);

static void
post_join(struct shard *shard, const struct reply_to *to, uint64_t job_id, uint32_t rank,
          uint64_t life, uint64_t first, int64_t now, struct outbox *out)
{
    struct mail *m = mail_create(MAIL_JOIN, job_id);
    struct pending *p = pending_create(joined_everywhere, to, job_id);

    if (!m || !p)
        abort();
    m->rank = p->rank = rank;
    m->step = p->value = first;
    p->life = life;
    post_all(shard, m, p, now, out);
}

/* A shard that had a round of the chosen step open already makes us choose a later one. */
static void
joined_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);
    struct worker *w = job && p->rank < job->n_workers ? &job->workers[p->rank] : NULL;

    if (!w || w->life != p->life || !worker_is_live(w)) {
        reply_status(out, &p->to, DT_R_HELLO_REQUIRED, "the worker's life has ended: say HELLO", 0);
        return;
    }
    if (job->view->job->params.consistency == DT_SYNC && p->step >= p->value) {
        post_join(shard, &p->to, p->job_id, p->rank, p->life, p->step + 2, now, out);
        return;
    }
    if (w->state == WORKER_JOINING) {
        job_count(job->view->job, JOB_JOINED, 1);
        dt_log(DT_LOG_INFO, "job %s: rank %u counts from step %llu", job->view->job->name, p->rank,
               (unsigned long long)p->value);
    }
    w->state = WORKER_MEMBER;
    w->first = p->value;
    reply_step(out, &p->to, view_step(job->view), p->value);
}

void
handle_join(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_step_msg m;
    struct worker *w;
    uint64_t first;

    if (!job || !call_require_worker(c) || !call_require_open(c))
        return;
    if (dt_step_decode(&c->head, &m) != DT_OK || m.step > UINT64_MAX / 2 ||
        (view_is_ssp(job->view) && m.step > DT_MAX_CLOCK)) {
        reply_status(c->out, &c->to, DT_R_MALFORMED, "JOIN: not a step", 0);
        return;
    }
    w = &job->workers[c->session->rank];
    if (w->state == WORKER_LEFT) {
        reply_status(c->out, &c->to, DT_R_LEFT, "this worker has left", view_step(job->view));
        return;
    }
    if (w->state == WORKER_MEMBER && m.step <= w->first) { /* a repeated JOIN: upward only */
        reply_step(c->out, &c->to, view_step(job->view), w->first);
        return;
    }
    if (job->view->job->params.deterministic) {
        reply_status(c->out, &c->to, DT_R_BAD_VALUE,
                     "JOIN: a deterministic job counts its ranks from step 0",
                     view_step(job->view));
        return;
    }
    first = view_is_ssp(job->view) ? clock_of_joiner(job->view->job, c->session->rank)
                                   : view_step(job->view) + 2;
    if (m.step > first)
        first = m.step;
    if (view_is_ssp(job->view))
        atomic_store(&job->shared->clocks[c->session->rank], first);
    post_join(c->shard, &c->to, job->id, c->session->rank, c->session->life, first, c->now, c->out);
}
