/*
 * hello.c - HELLO: opens or attaches to a job and binds a session. Shard 0 decides about lives; the
 * other shards bind what shard 0 has attached. Runs on the shard's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "psd/serve/call.h"
#include "psd/serve/control.h"

/* What this psd offers beyond the protocol's core; clients look for names they know. */
static const char features[][24] = {"sync",          "async", "locking-none",
                                    "deterministic", "ssp",   "locking-variable"};
#define N_FEATURES (sizeof(features) / sizeof(features[0]))

/* The listener that the client used: the same ipc path, or the tcp listener with its port. */
static const struct serve_listener *
find_listener(const struct serve_config *config, const char *endpoint)
{
    const char *port = strrchr(endpoint, ':');
    const struct serve_listener *first = NULL;
    bool ipc = !strncmp(endpoint, "ipc://", 6);
    uint32_t i;

    for (i = 0; i < config->n_listeners; i++) {
        const struct serve_listener *l = &config->listeners[i];
        const char *own = strrchr(l->endpoint, ':');

        if (!strcmp(l->endpoint, endpoint))
            return l;
        if (ipc != !strncmp(l->endpoint, "ipc://", 6))
            continue;
        if (!ipc && port && own && !strcmp(port, own))
            return l;
        if (!first)
            first = l;
    }
    return first;
}

static void
fill_reply(const struct shard *shard, const struct session *s, const struct dt_hello *hello,
           struct dt_hello_reply *m)
{
    const struct serve_config *config = &shard->shared->config;
    const struct serve_listener *l = find_listener(config, hello->endpoint);
    uint32_t i;

    memset(m, 0, sizeof(*m));
    m->incarnation = shard->shared->incarnation;
    m->life = s->life;
    m->shard = shard->index;
    m->n_shards = config->n_shards;
    for (i = 0; i < config->n_shards && l; i++)
        memcpy(m->peers[i], l->peers[i], sizeof(m->peers[i]));
    m->job_id = s->view->id;
    m->initialised = s->view->job->initialised;
    m->window = s->window.messages;
    m->window_bytes = s->window.bytes;
    m->lease_ms = s->view->job->params.lease_ms;
    m->n_features = N_FEATURES;
    for (i = 0; i < N_FEATURES; i++)
        memcpy(m->features[i], features[i], sizeof(m->features[i]));
}

static void
bind(struct shard *shard, struct view *view, const struct dt_hello *hello, struct reply_to *to,
     uint64_t life, const struct worker *w, struct outbox *out)
{
    struct session *s = session_create(shard, to, view, hello->rank, life);
    struct dt_hello_reply m;
    struct reply *r;

    if (!s) {
        reply_status(out, to, DT_R_QUOTA, "psd has too many sessions or is short of memory", 0);
        return;
    }
    fill_reply(shard, s, hello, &m);
    if (w) {
        m.must_join = w->state == WORKER_JOINING;
        m.first_step = w->first;
    }
    if (hello->rank != DT_NO_RANK)
        atomic_store(&view->job->shared->last_seen_ms[hello->rank], shard_running_ms(shard));
    r = reply_create(to);
    if (!r)
        return;
    dt_hello_reply_encode(&r->header, to->request, s->id, view_step(view), &m);
    outbox_add_reply(out, r);
}

/* All shards know the life: bind the session and answer. */
static void
attached_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);
    struct dt_hello *hello = p->arg;

    (void)now;
    if (!job || p->rank >= job->n_workers || job->workers[p->rank].life != p->life ||
        !worker_is_live(&job->workers[p->rank]))
        reply_status(out, &p->to, DT_R_HELLO_REQUIRED, "the job has changed: say HELLO again", 0);
    else if (p->status != DT_OK)
        reply_status(out, &p->to, p->status, "psd is short of memory", 0);
    else
        bind(shard, job->view, hello, &p->to, p->life, &job->workers[p->rank], out);
}

static void
attach(struct call *c, struct control_job *job, struct worker *w, const struct dt_hello *hello)
{
    struct mail *m = mail_create(MAIL_ATTACH, job->id);
    struct pending *p = pending_create(attached_everywhere, &c->to, job->id);

    if (!m || !p)
        abort();
    p->arg = malloc(sizeof(*hello));
    if (!p->arg)
        abort();
    memcpy(p->arg, hello, sizeof(*hello));
    m->rank = p->rank = hello->rank;
    m->life = p->life = w->life;
    memcpy(m->uuid, hello->uuid, DT_UUID_BYTES);
    post_all(c->shard, m, p, c->now, c->out);
}

static void
start_life(struct call *c, struct control_job *job, struct worker *w, const struct dt_hello *hello)
{
    const struct dt_job_params *params = &job->view->job->params;
    bool expected = w->known && w->state == WORKER_MISSING;
    uint32_t rank = hello->rank;

    w->was_known = w->known;
    w->was = w->state;
    w->declared = w->turned_away = false;
    w->known = true;
    w->life = ++c->shard->control->last_life;
    /* In an asynchronous job whoever is here takes part. */
    w->state = expected || params->consistency == DT_ASYNC ? WORKER_MEMBER : WORKER_JOINING;
    w->first = 0;
    w->last = DT_NO_VERSION;
    w->no_step = false;
    w->init_waits = false;
    control_set_step_wait(job, w, false);
    if (memcmp(w->uuid, hello->uuid, DT_UUID_BYTES) != 0)
        w->clock = 0; /* a new process counts its steps anew */
    memcpy(w->uuid, hello->uuid, DT_UUID_BYTES);
    memcpy(w->host, hello->host, sizeof(w->host));
    w->pid = hello->pid;
    job->came = true;
    job->suspended_ms = -1;
    atomic_store(&job->shared->last_seen_ms[rank], shard_running_ms(c->shard));
    dt_log(DT_LOG_INFO, "job %s: rank %u is here (%s, pid %llu)%s", hello->job, rank, w->host,
           (unsigned long long)w->pid, w->state == WORKER_JOINING ? ", joining late" : "");
    if (job->grant_rank == rank)
        control_pass_grant(c->shard, job, c->now, c->out);
    attach(c, job, w, hello);
}

/* The same life on a new connection: what it had parked here is asked for again. */
static void
resume(struct call *c, struct control_job *job, struct worker *w, const struct dt_hello *hello)
{
    w->init_waits = false;
    control_set_step_wait(job, w, false);
    bind(c->shard, job->view, hello, &c->to, w->life, w, c->out);
}

/* A worker says HELLO to an open job on shard 0. */
static void
admit(struct call *c, struct control_job *job, const struct dt_hello *hello)
{
    struct worker *w = control_require_worker(job, hello->rank);
    bool same;

    if (!w) {
        reply_status(c->out, &c->to, DT_R_QUOTA, "psd is short of memory", 0);
        return;
    }
    same = w->known && w->life && !memcmp(w->uuid, hello->uuid, DT_UUID_BYTES);
    if (same && w->state == WORKER_LEFT)
        reply_status(c->out, &c->to, DT_R_LEFT, "this worker has left", view_step(job->view));
    else if (worker_is_live(w) && same)
        resume(c, job, w, hello);
    else if (job->view->job->params.deterministic && (!w->known || w->state != WORKER_MISSING) &&
             !worker_is_live(w))
        reply_reject(c->out, &c->to, DT_R_MISMATCH,
                     "rank %u would join late: job %s is deterministic and takes each of its %u "
                     "ranks once",
                     hello->rank, hello->job, job->view->job->params.workers);
    else if (worker_is_live(w))
        reply_reject(c->out, &c->to, DT_R_RANK_TAKEN,
                     "rank %u of job %s is taken by pid %llu on host %s: give each worker a --rank "
                     "of its own",
                     hello->rank, hello->job, (unsigned long long)w->pid, w->host);
    else
        start_life(c, job, w, hello);
}

static bool
is_replaceable(const struct control_job *job)
{
    return job->view->job->state != JOB_OPEN || control_is_suspended(job);
}

/* Whatever would let the sum of a round depend on time, or on the machine of a worker. */
static enum dt_status
check_deterministic(const struct dt_job_params *p, struct dt_error *err)
{
    if (p->consistency != DT_SYNC)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "deterministic: updates of an asynchronous job come in any order");
    if (p->aggregate && p->aggregate < p->workers)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "deterministic: aggregate %u of %u workers drops whoever is late: use 0",
                       p->aggregate, p->workers);
    if (p->on_loss != DT_ON_LOSS_FAIL)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "deterministic: on_loss shrink goes on with other sums: use fail");
    if (!p->kernel[0])
        return dt_fail(err, DT_R_BAD_VALUE,
                       "deterministic: kernel is missing: a word for what computes the gradients, "
                       "to be compared between workers");
    return DT_OK;
}

/* Combinations that make no sense, and what this psd does not offer. */
static enum dt_status
check_params(const struct dt_job_params *p, struct dt_error *err)
{
    if (p->consistency != DT_SSP && p->staleness_bound)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "staleness_bound: only ssp has one (elsewhere: max_staleness)");
    if (p->locking == DT_LOCK_VARIABLE && p->consistency == DT_SYNC)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "locking variable: in a synchronous job all slices are of one step anyway");
    if (p->locking == DT_LOCK_NONE && p->consistency != DT_ASYNC)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "locking none: only consistency async can do without exclusion");
    if (p->consistency == DT_SYNC && p->max_staleness >= 0)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "max_staleness: a synchronous job drops every past version anyway");
    if (p->consistency != DT_SYNC && (p->aggregate || p->round_timeout_ms))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "aggregate and round_timeout: an asynchronous job has no rounds");
    return p->deterministic ? check_deterministic(p, err) : DT_OK;
}

static struct control_job *
find_or_open(struct call *c, const struct dt_hello *hello, const struct dt_job_params *params,
             struct dt_error *err)
{
    struct control_job *job = control_find_name(c->shard, hello->job);
    bool replaces = job && hello->fresh && !hello->incarnation && is_replaceable(job) &&
                    hello->rank != DT_NO_RANK;

    if (job && !replaces)
        return job;
    if (hello->rank == DT_NO_RANK) {
        dt_fail(err, DT_R_NO_JOB, "there is no job %s", hello->job);
        return NULL;
    }
    if (hello->incarnation) {
        dt_fail(err, DT_R_NO_JOB, "psd came back without job %s", hello->job);
        return NULL;
    }
    if (check_params(params, err) != DT_OK)
        return NULL;
    if (replaces)
        control_close(c->shard, job, c->now, c->out);
    return control_open(c->shard, hello, params, c->now, c->out, err);
}

/* A life that psd gave for an older job of that name, which --fresh has replaced. */
static bool
is_of_older_job(const struct shard *shard, const struct control_job *job,
                const struct dt_hello *hello)
{
    return hello->life && hello->life <= job->opened_life &&
           hello->incarnation == shard->shared->incarnation;
}

static enum dt_status
check_state(const struct shard *shard, const struct control_job *job, const struct dt_hello *hello,
            struct dt_error *err)
{
    const struct job *j = job->view->job;
    const struct worker *w = hello->rank < job->n_workers ? &job->workers[hello->rank] : NULL;

    if (is_of_older_job(shard, job, hello))
        return dt_fail(err, DT_R_NO_JOB,
                       "job %s of this worker was replaced by a new one of that name (--fresh)",
                       j->name);
    if (w && w->known && w->state == WORKER_LEFT && !memcmp(w->uuid, hello->uuid, DT_UUID_BYTES))
        return dt_fail(err, DT_R_LEFT, "this worker has left");
    if (j->state == JOB_FAILED)
        return dt_fail(err, DT_R_JOB_FAILED, "job %s failed: %s", j->name, j->reason);
    if (j->state == JOB_COMPLETE)
        return dt_fail(
            err, DT_R_JOB_COMPLETE,
            "job %s is complete and read-only: use --fresh to replace it, or another --job",
            j->name);
    if (job->task != hello->task)
        return dt_fail(err, DT_R_MISMATCH,
                       "this psd is ps task %u of job %s, this worker says task %u: give --ps in "
                       "the same order everywhere",
                       job->task, j->name, hello->task);
    return DT_OK;
}

static void
hello_shard0(struct call *c, const struct dt_hello *hello, const struct dt_job_params *params)
{
    struct dt_error err;
    struct control_job *job = find_or_open(c, hello, params, &err);

    if (!job) {
        reply_status(c->out, &c->to, err.code, err.text, 0);
        return;
    }
    if (hello->rank == DT_NO_RANK) {
        bind(c->shard, job->view, hello, &c->to, 0, NULL, c->out);
        return;
    }
    if (check_state(c->shard, job, hello, &err) != DT_OK ||
        dt_job_params_compare(&job->view->job->params, params, &err) != DT_OK)
        reply_status(c->out, &c->to, err.code, err.text, view_step(job->view));
    else
        admit(c, job, hello);
}

static void
hello_other(struct call *c, const struct dt_hello *hello)
{
    struct view *view = view_find_name(c->shard, hello->job);
    const struct attached *a = NULL;

    if (view && hello->rank == DT_NO_RANK) {
        bind(c->shard, view, hello, &c->to, 0, NULL, c->out);
        return;
    }
    if (view && hello->rank < view->n_ranks)
        a = &view->ranks[hello->rank];
    if (!a || !a->life || a->life != hello->life || memcmp(a->uuid, hello->uuid, DT_UUID_BYTES) ||
        hello->incarnation != c->shard->shared->incarnation)
        reply_status(c->out, &c->to, DT_R_HELLO_FIRST, "say HELLO to shard 0 first", 0);
    else
        bind(c->shard, view, hello, &c->to, a->life, NULL, c->out);
}

void
handle_hello(struct call *c)
{
    struct dt_hello *hello = malloc(sizeof(*hello));
    struct dt_job_params params;
    struct dt_error err = {DT_OK, ""};
    enum dt_status status;

    if (!hello)
        return;
    dt_job_params_default(&params);
    status = dt_hello_decode(&c->head, hello);
    if (status == DT_OK && c->req->n_frames == 1)
        status = dt_job_params_decode(&params, c->req->frames[0].p, c->req->frames[0].bytes, &err);
    if (status != DT_OK)
        reply_status(c->out, &c->to, status, err.text[0] ? err.text : dt_status_text(status), 0);
    else if (c->shard->index == 0)
        hello_shard0(c, hello, &params);
    else
        hello_other(c, hello);
    free(hello);
}
