/*
 * pull.c - PULL, and the pull half of PUSHPULL: answer at once or park. Home shard of the slices.
 */
#include "psd/serve/call.h"
#include "psd/serve/parked.h"
#include "psd/serve/whole.h"

void
pull_or_park(struct call *c, const struct dt_data *data, const struct dt_data_result *results)
{
    struct view *v = c->session->view;
    struct dt_waiting waiting;
    struct parked *p;

    stages_enter(&c->shard->stages, STAGE_REPLY);
    p = parked_create(c->shard, c->session, c->to.op, c->to.request, data, results);
    if (!p) {
        reply_status(c->out, &c->to, DT_R_QUOTA, "too many parked requests", view_step(v));
        return;
    }
    job_count(v->job, JOB_PULLS, 1);
    if (p->n_waiting == 0) {
        parked_answer(c->shard, p, false, c->out);
        return;
    }
    p->since_ns = stages_parked(&c->shard->stages);
    parked_waiting(p, &waiting);
    reply_waiting(c->out, &c->to, DT_PARKED, view_step(v), &waiting);
}

void
handle_pull(struct call *c)
{
    const struct job *job = c->session->view->job;
    struct dt_data m;
    enum dt_status status = dt_data_decode(&c->head, &m);
    uint32_t i;

    if (status != DT_OK) {
        reply_status(c->out, &c->to, status, "PULL: malformed", 0);
        return;
    }
    if (job->state == JOB_FAILED) {
        reply_status(c->out, &c->to, DT_R_JOB_FAILED, job->reason, 0);
        return;
    }
    for (i = 0; i < m.n_items; i++) {
        struct slice *s = call_find_slice(c, &m.items[i]);

        if (!s) {
            reply_status(c->out, &c->to, DT_R_NO_VARIABLE, "no such slice on this shard", 0);
            return;
        }
        if (job->state == JOB_COMPLETE &&
            !parked_is_there(s, job, c->session->rank, m.items[i].want)) {
            reply_status(c->out, &c->to, DT_R_JOB_COMPLETE,
                         "the job is complete: that version will not come", 0);
            return;
        }
    }
    if (!whole_is_covered(job, &m, false)) {
        reply_status(c->out, &c->to, DT_R_BAD_VALUE, WHOLE_TEXT, 0);
        return;
    }
    pull_or_park(c, &m, NULL);
}
