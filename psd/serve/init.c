/*
 * init.c - initial values: the grant, INIT and INIT_DONE (DESIGN section 5). The grant is shard 0's;
 * INIT goes to the slices' homes.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/base/finite.h"
#include "psd/serve/call.h"
#include "psd/serve/control.h"

static void
granted_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);

    (void)now;
    if (job && job->grant_rank == p->rank)
        reply_step(out, &p->to, view_step(job->view), DT_INIT_GRANTED);
}

void
control_grant(struct shard *shard, struct control_job *job, uint32_t rank,
              const struct reply_to *to, int64_t now, struct outbox *out)
{
    struct mail *m = mail_create(MAIL_GRANT, job->id);
    struct pending *p = pending_create(granted_everywhere, to, job->id);

    if (!m || !p)
        abort();
    job->grant_rank = rank;
    m->rank = p->rank = rank;
    m->life = job->workers[rank].life;
    post_all(shard, m, p, now, out);
}

void
control_pass_grant(struct shard *shard, struct control_job *job, int64_t now, struct outbox *out)
{
    uint32_t r;

    job->grant_rank = DT_NO_RANK;
    if (job->view->job->initialised)
        return;
    for (r = 0; r < job->n_workers; r++) {
        struct worker *w = &job->workers[r];

        if (!worker_is_live(w) || !w->init_waits)
            continue;
        w->init_waits = false;
        control_grant(shard, job, r, &w->init_to, now, out);
        return;
    }
}

static void
initialised_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);
    uint32_t r;

    (void)now;
    if (!job)
        return;
    reply_step(out, &p->to, view_step(job->view), DT_INIT_COMPLETE);
    for (r = 0; r < job->n_workers; r++) {
        if (!job->workers[r].init_waits)
            continue;
        job->workers[r].init_waits = false;
        reply_step(out, &job->workers[r].init_to, view_step(job->view), DT_INIT_COMPLETE);
    }
}

static void
finish_init(struct call *c, struct control_job *job)
{
    uint32_t have = atomic_load(&job->shared->n_initialised);
    struct pending *p;
    struct mail *m;

    if (job->grant_rank != c->session->rank) {
        reply_status(c->out, &c->to, DT_R_DENIED, "the right to initialise is not this worker's",
                     0);
        return;
    }
    if (have != job->shared->declared->n_slices) {
        reply_reject(c->out, &c->to, DT_R_BAD_VALUE, "%u of %u slices have initial values", have,
                     job->shared->declared->n_slices);
        return;
    }
    job->grant_rank = DT_NO_RANK;
    m = mail_create(MAIL_INITIALISED, job->id);
    p = pending_create(initialised_everywhere, &c->to, job->id);
    if (!m || !p)
        abort();
    post_all(c->shard, m, p, c->now, c->out);
}

static void
park_init(struct call *c, struct control_job *job)
{
    struct worker *w = &job->workers[c->session->rank];
    struct dt_waiting waiting;

    memset(&waiting, 0, sizeof(waiting));
    waiting.reason = DT_WAIT_INIT;
    waiting.ranks[waiting.n_ranks++] = job->grant_rank;
    w->init_waits = true;
    w->init_to = c->to;
    reply_waiting(c->out, &c->to, DT_PARKED, view_step(job->view), &waiting);
}

static bool
check_fingerprint(struct call *c, const struct control_job *job, const struct dt_init_done *m)
{
    const struct declared *d = job->shared->declared;

    if (!d) {
        reply_status(c->out, &c->to, DT_R_NOT_INITIALISED, "DECLARE comes before INIT_DONE", 0);
        return false;
    }
    if (m->n_variables == d->n && m->fingerprint == d->fingerprint)
        return true;
    reply_reject(
        c->out, &c->to, DT_R_MISMATCH,
        "declarations: the job has %u variables with fingerprint %016llx, this worker says "
        "%u with %016llx",
        d->n, (unsigned long long)d->fingerprint, m->n_variables,
        (unsigned long long)m->fingerprint);
    return false;
}

void
handle_init_done(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_init_done m;

    if (!job || !call_require_present(c, job) || !call_require_open(c))
        return;
    if (dt_init_done_decode(&c->head, &m) != DT_OK) {
        reply_status(c->out, &c->to, DT_R_MALFORMED, "INIT_DONE: malformed", 0);
        return;
    }
    if (!check_fingerprint(c, job, &m))
        return;
    if (job->view->job->initialised)
        reply_step(c->out, &c->to, view_step(job->view), DT_INIT_COMPLETE);
    else if (m.sent)
        finish_init(c, job);
    else if (job->grant_rank == DT_NO_RANK || job->grant_rank == c->session->rank)
        control_grant(c->shard, job, c->session->rank, &c->to, c->now, c->out);
    else
        park_init(c, job);
}

static enum dt_status
check_items(const struct call *c, const struct dt_data *m, const char **text)
{
    uint32_t i;

    *text = "INIT: one frame of the slice's size for each item";
    if (c->req->n_frames != m->n_items)
        return DT_R_MALFORMED;
    for (i = 0; i < m->n_items; i++) {
        const struct slice *s = call_find_slice(c, &m->items[i]);

        if (!s) {
            *text = "INIT: no such slice on this shard";
            return DT_R_NO_VARIABLE;
        }
        if (c->req->frames[i].bytes != s->n * sizeof(float))
            return DT_R_MALFORMED;
        if (!dt_is_finite(c->req->frames[i].p, s->n)) {
            *text = "INIT: NaN or Inf in the initial values";
            return DT_R_NOT_FINITE;
        }
    }
    return DT_OK;
}

static bool
set_values(struct call *c, const struct dt_data *m)
{
    struct job *job = c->session->view->job;
    uint32_t i;

    for (i = 0; i < m->n_items; i++) {
        struct slice *s = call_find_slice(c, &m->items[i]);
        bool first;

        if (!slice_set(s, job->pool, c->req->frames[i].p, &first))
            return false;
        if (first)
            atomic_fetch_add(&job->shared->n_initialised, 1);
    }
    return true;
}

void
handle_init(struct call *c)
{
    const struct view *v = c->session->view;
    const char *text;
    struct dt_data m;
    enum dt_status status = dt_data_decode(&c->head, &m);

    if (status != DT_OK) {
        reply_status(c->out, &c->to, status, "INIT: malformed", 0);
        return;
    }
    if (!call_require_worker(c) || !call_require_open(c))
        return;
    if (v->job->initialised || v->grant_rank != c->session->rank ||
        v->grant_life != c->session->life) {
        reply_status(c->out, &c->to, DT_R_DENIED, "the right to initialise is not this worker's",
                     view_step(v));
        return;
    }
    status = check_items(c, &m, &text);
    if (status == DT_OK && !set_values(c, &m)) {
        status = DT_R_QUOTA;
        text = "psd is short of memory";
    }
    reply_status(c->out, &c->to, status, status == DT_OK ? NULL : text, view_step(v));
}
