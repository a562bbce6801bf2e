/*
 * admin.c - the operator's verbs: status, kick, shutdown. Shard 0, admin socket only.
 *
 * Status asks every shard about every job, one MAIL_STATUS a job, one after the other, then with a
 * MAIL_STAGES about itself; the body grows in the pending entry.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire/stats.h"
#include "psd/serve/call.h"
#include "psd/serve/control.h"
#include "psd/serve/parked.h"
#include "psd/serve/status_body.h"

#define MAX_WAITING 256 /* parked requests told a shard and job */

static void
write_waiting(const struct shard *shard, const struct parked *p, struct dt_buffer *body)
{
    const struct parked_item *it = parked_first_waiting(p);
    struct dt_waiting w;
    uint32_t i;

    parked_waiting(p, &w);
    dt_write_map(body, 7);
    dt_write_str(body, "rank");
    dt_write_u64(body, p->session->rank);
    dt_write_str(body, "shard");
    dt_write_u64(body, shard->index);
    dt_write_str(body, "reason");
    dt_write_str(body, w.reason == DT_WAIT_INIT    ? "init"
                       : w.reason == DT_WAIT_CLOCK ? "clock"
                                                   : "step");
    dt_write_str(body, "variable");
    dt_write_str(body, it->slice->variable->declared->decl.name);
    dt_write_str(body, "slice");
    dt_write_u64(body, it->slice->index);
    dt_write_str(body, "step");
    dt_write_u64(body, w.step);
    dt_write_str(body, "ranks");
    dt_write_array(body, w.n_ranks);
    for (i = 0; i < w.n_ranks; i++)
        dt_write_u64(body, w.ranks[i]);
}

uint32_t
status_waiting(const struct shard *shard, const struct view *v, struct dt_buffer *body)
{
    const struct session *s;
    const struct parked *p;
    uint32_t n = 0;

    for (s = v->sessions; s; s = s->next) {
        for (p = s->parked; p && n < MAX_WAITING; p = p->next) {
            if (!parked_first_waiting(p))
                continue;
            write_waiting(shard, p, body);
            n++;
        }
    }
    return n;
}

static const char *
worker_state_name(enum worker_state s)
{
    static const char *const names[] = {"missing", "joining", "member", "left", "lost"};

    return names[s];
}

static void
write_member(const struct shard *shard, const struct control_job *job, uint32_t rank,
             struct dt_buffer *b)
{
    const struct worker *w = &job->workers[rank];
    int64_t silent = shard_running_ms(shard) - atomic_load(&job->shared->last_seen_ms[rank]);

    dt_write_map(b, 7);
    dt_write_str(b, "rank");
    dt_write_u64(b, rank);
    dt_write_str(b, "state");
    dt_write_str(b, worker_state_name(w->state));
    dt_write_str(b, "host");
    dt_write_str(b, w->host);
    dt_write_str(b, "pid");
    dt_write_u64(b, w->pid);
    dt_write_str(b, "first");
    dt_write_u64(b, w->first);
    dt_write_str(b, "last");
    if (w->state == WORKER_LEFT && w->last != DT_NO_VERSION)
        dt_write_u64(b, w->last);
    else
        dt_write_nil(b);
    dt_write_str(b, "silent_ms");
    dt_write_u64(b, silent > 0 && worker_is_live(w) ? (uint64_t)silent : 0);
}

static void
write_members(const struct shard *shard, const struct control_job *job, struct dt_buffer *b)
{
    uint32_t r, n = 0;

    for (r = 0; r < job->n_workers; r++)
        n += job->workers[r].known;
    dt_write_array(b, n);
    for (r = 0; r < job->n_workers; r++) {
        if (job->workers[r].known)
            write_member(shard, job, r, b);
    }
}

static const char *
job_state_name(const struct control_job *job)
{
    if (job->view->job->state == JOB_COMPLETE)
        return "complete";
    if (job->view->job->state == JOB_FAILED)
        return "failed";
    return control_is_suspended(job) ? "suspended" : "open";
}

static void
write_init_waits(const struct control_job *job, struct dt_buffer *b)
{
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        if (!job->workers[r].init_waits)
            continue;
        dt_write_map(b, 3);
        dt_write_str(b, "rank");
        dt_write_u64(b, r);
        dt_write_str(b, "reason");
        dt_write_str(b, "init");
        dt_write_str(b, "ranks");
        dt_write_array(b, job->grant_rank == DT_NO_RANK ? 0 : 1);
        if (job->grant_rank != DT_NO_RANK)
            dt_write_u64(b, job->grant_rank);
    }
}

static void
write_step_waits(const struct control_job *job, struct dt_buffer *b)
{
    uint32_t r;

    for (r = 0; r < job->n_workers; r++) {
        if (!job->workers[r].step_waits)
            continue;
        dt_write_map(b, 4);
        dt_write_str(b, "rank");
        dt_write_u64(b, r);
        dt_write_str(b, "reason");
        dt_write_str(b, "global_step");
        dt_write_str(b, "step");
        dt_write_u64(b, job->workers[r].step_awaited);
        dt_write_str(b, "ranks");
        dt_write_array(b, 0);
    }
}

static void
write_sets(const struct control_job *job, struct dt_buffer *b)
{
    uint32_t i;

    dt_write_array(b, job->n_sets);
    for (i = 0; i < job->n_sets; i++) {
        const struct control_set *set = &job->sets[i];

        dt_write_map(b, 4);
        dt_write_str(b, "key");
        dt_write_str(b, set->key);
        dt_write_str(b, "value");
        dt_write_double(b, set->value);
        dt_write_str(b, "variable");
        dt_write_str(b, set->variable);
        dt_write_str(b, "step");
        dt_write_u64(b, set->from);
    }
}

static uint32_t
count_waits(const struct control_job *job)
{
    uint32_t r, n = 0;

    for (r = 0; r < job->n_workers; r++)
        n += job->workers[r].init_waits + job->workers[r].step_waits;
    return n;
}

static void
write_job(const struct shard *shard, const struct control_job *job, const struct pending *p,
          struct dt_buffer *b)
{
    const struct job *j = job->view->job;

    dt_write_map(b, 10);
    dt_write_str(b, "name");
    dt_write_str(b, j->name);
    dt_write_str(b, "state");
    dt_write_str(b, job_state_name(job));
    dt_write_str(b, "step");
    dt_write_u64(b, view_step(job->view));
    dt_write_str(b, "workers");
    dt_write_u64(b, j->params.workers);
    dt_write_str(b, "reason");
    dt_write_str(b, j->state == JOB_FAILED ? j->reason : "");
    dt_write_str(b, "counters");
    status_counters(j, b);
    dt_write_str(b, "sets");
    write_sets(job, b);
    dt_write_str(b, "nonfinite");
    nonfinite_write(job, b);
    dt_write_str(b, "members");
    write_members(shard, job, b);
    dt_write_str(b, "waiting");
    dt_write_array(b, p->n_body + count_waits(job));
    if (p->body.len)
        dt_buffer_append(b, p->body.data, p->body.len);
    write_init_waits(job, b);
    write_step_waits(job, b);
}

static void
answer_status(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    const struct serve_config *config = &shard->shared->config;
    struct dt_buffer body = {0};

    (void)now;
    dt_write_map(&body, 7);
    dt_write_str(&body, "version");
    dt_write_str(&body, PSD_VERSION);
    dt_write_str(&body, "incarnation");
    dt_write_u64(&body, shard->shared->incarnation);
    dt_write_str(&body, "shards");
    dt_write_u64(&body, config->n_shards);
    dt_write_str(&body, "sessions");
    dt_write_u64(&body, shard->n_sessions);
    dt_write_str(&body, "cpu");
    if (config->write_cpu)
        config->write_cpu(config->cpu, &body);
    else
        dt_write_nil(&body);
    dt_write_str(&body, "stages");
    dt_write_array(&body, p->n_body);
    dt_buffer_append(&body, p->body.data, p->body.len);
    dt_write_str(&body, "jobs");
    dt_write_array(&body, p->n_so_far);
    if (p->so_far.len)
        dt_buffer_append(&body, p->so_far.data, p->so_far.len);
    reply_body(out, &p->to, &body, 0);
}

static void status_everywhere(struct shard *shard, struct pending *p, int64_t now,
                              struct outbox *out);

/* Jobs by rising id, so that one that comes or goes meanwhile does no harm. */
static struct control_job *
find_job_after(const struct shard *shard, uint64_t id)
{
    struct control_job *job, *next = NULL;

    for (job = shard->control->jobs; job; job = job->next) {
        if (!job->closing && job->id > id && (!next || job->id < next->id))
            next = job;
    }
    return next;
}

/* Ask all shards about the job after `before`, in the end about their stages; what `before` has collected moves on. */
static void
ask_next(struct shard *shard, struct pending *before, int64_t now, struct outbox *out)
{
    struct control_job *next = find_job_after(shard, before->job_id);
    uint64_t id = next ? next->id : 0;
    struct mail *m = mail_create(next ? MAIL_STATUS : MAIL_STAGES, id);
    struct pending *p = pending_create(next ? status_everywhere : answer_status, &before->to, id);

    if (!m || !p)
        abort();
    p->n_so_far = before->n_so_far;
    p->so_far = before->so_far;
    memset(&before->so_far, 0, sizeof(before->so_far));
    post_all(shard, m, p, now, out);
}

static void
status_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);

    /* A body beyond the limit of a message would not arrive: the rest is left out. */
    if (job && p->so_far.len + p->body.len < DT_MAX_BODY_BYTES - (256u << 10)) {
        write_job(shard, job, p, &p->so_far);
        p->n_so_far++;
    }
    ask_next(shard, p, now, out);
}

void
handle_admin_status(struct call *c)
{
    struct pending start;

    memset(&start, 0, sizeof(start));
    start.to = c->to;
    ask_next(c->shard, &start, c->now, c->out);
}

void
handle_admin_kick(struct call *c)
{
    struct control_job *job;
    struct dt_kick m;

    if (dt_kick_decode(&c->head, &m) != DT_OK) {
        reply_status(c->out, &c->to, DT_R_MALFORMED, "KICK: malformed", 0);
        return;
    }
    job = control_find_name(c->shard, m.job);
    if (!job) {
        reply_reject(c->out, &c->to, DT_R_NO_JOB, "there is no job %s", m.job);
        return;
    }
    if (m.rank >= job->n_workers || !worker_is_live(&job->workers[m.rank])) {
        reply_reject(c->out, &c->to, DT_R_BAD_VALUE, "rank %u of job %s is not there", m.rank,
                     m.job);
        return;
    }
    control_lose(c->shard, job, m.rank, "was kicked by the operator", c->now, c->out);
    reply_status(c->out, &c->to, DT_OK, NULL, view_step(job->view));
}

void
handle_admin_shutdown(struct call *c)
{
    c->shard->control->shutdown = true;
    reply_status(c->out, &c->to, DT_OK, NULL, 0);
}
