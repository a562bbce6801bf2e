/*
 * leave.c - LEAVE: the last step that counts a worker; the end of a job. Shard 0.
 */
#include <stdlib.h>

#include "psd/serve/call.h"
#include "psd/serve/control.h"

static void
completed_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);

    (void)now;
    reply_status(out, &p->to, DT_OK, NULL, job ? view_step(job->view) : 0);
}

static void
left_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);
    struct pending *end;

    if (!job) {
        reply_status(out, &p->to, DT_OK, NULL, 0);
        return;
    }
    end = pending_create(completed_everywhere, &p->to, p->job_id);
    if (!end)
        abort();
    if (control_complete(shard, job, end, now, out))
        return;
    reply_status(out, &p->to, DT_OK, NULL, view_step(job->view));
    free(end);
}

void
handle_leave(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_step_msg m;
    struct worker *w;
    struct mail *mail;
    struct pending *p;

    if (!job || !call_require_worker(c))
        return;
    if (dt_step_decode(&c->head, &m) != DT_OK) {
        reply_status(c->out, &c->to, DT_R_MALFORMED, "LEAVE: not a step", 0);
        return;
    }
    w = &job->workers[c->session->rank];
    if (control_is_turned_away(job, c->session->rank)) { /* it never was one of the job's */
        reply_status(c->out, &c->to, DT_OK, NULL, view_step(job->view));
        return;
    }
    if (w->state == WORKER_LEFT || job->view->job->state != JOB_OPEN) {
        w->state = WORKER_LEFT;
        reply_status(c->out, &c->to, DT_OK, NULL, view_step(job->view));
        return;
    }
    mail = mail_create(MAIL_LEAVE, job->id);
    p = pending_create(left_everywhere, &c->to, job->id);
    if (!mail || !p)
        abort();
    /* Nobody can have pushed past the highest version: a greater last step would never end. */
    if (m.step != DT_NO_VERSION && m.step > view_step(job->view))
        m.step = view_step(job->view);
    w->state = WORKER_LEFT;
    w->last = m.step;
    job_count(job->view->job, JOB_LEFT, 1);
    dt_log(DT_LOG_INFO, "job %s: rank %u has left", job->view->job->name, c->session->rank);
    mail->rank = c->session->rank;
    mail->step = m.step;
    if (job->grant_rank == c->session->rank)
        control_pass_grant(c->shard, job, c->now, c->out);
    post_all(c->shard, mail, p, c->now, c->out);
}
