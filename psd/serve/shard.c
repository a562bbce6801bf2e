/*
 * shard.c - a shard's life: create, mail, tick, stop. Runs on the shard's thread.
 */
#include "psd/serve/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/random.h"
#include "psd/serve/control.h"
#include "psd/serve/parked.h"
#include "psd/serve/session.h"
#include "psd/serve/untaken.h"

#define REPEAT_GOODBYE_MS 200
#define MAX_TURN_MS 500        /* a longer gap between two ticks: psd did not turn */
#define IDLE_SESSION_MS 120000 /* readers, and workers that have left */
#define CHECK_SESSIONS_MS 1000 /* are there such? */

struct serve_shared *
serve_shared_create(const struct serve_config *config)
{
    struct serve_shared *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->config = *config;
    serve_set_limits(s, &(struct serve_limits){config->window, config->window_bytes,
                                               config->max_session_bytes, config->memory_quota});
    s->incarnation = dt_random_u64();
    return s;
}

void
serve_set_limits(struct serve_shared *s, const struct serve_limits *limits)
{
    atomic_store(&s->limits.window, limits->window);
    atomic_store(&s->limits.window_bytes, limits->window_bytes);
    atomic_store(&s->limits.max_session_bytes, limits->max_session_bytes);
    atomic_store(&s->limits.memory_quota, limits->memory_quota);
}

void
serve_shared_destroy(struct serve_shared *s)
{
    free(s);
}

uint64_t
serve_incarnation(const struct serve_shared *s)
{
    return s->incarnation;
}

struct shard *
shard_create(struct serve_shared *shared, uint32_t index, int wake_fd)
{
    struct shard *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->shared = shared;
    s->index = index;
    s->wake_fd = wake_fd;
    s->last_tick_ms = -1;
    s->pool = dt_pool_create();
    stages_init(&s->stages, shared->config.stage_clock, shared->config.stage_sample);
    if (index == 0)
        s->control = control_create();
    if (!s->pool || (index == 0 && !s->control)) {
        shard_destroy(s);
        return NULL;
    }
    return s;
}

void
shard_destroy(struct shard *s)
{
    if (!s)
        return;
    while (s->views)
        view_destroy(s, s->views);
    untaken_destroy(s);
    control_destroy(s);
    dt_pool_destroy(s->pool);
    free(s);
}

uint64_t
shard_n_opened(const struct shard *s)
{
    return s->n_opened;
}

struct stages *
shard_stages(struct shard *s)
{
    return &s->stages;
}

/* A shard saw a rank hang in a round; shard 0 decides. */
static void
round_is_late(struct shard *shard, const struct mail *m, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, m->job_id);
    char why[96];

    if (!job || job->view->job->state != JOB_OPEN || m->rank >= job->n_workers ||
        !worker_is_live(&job->workers[m->rank]) || job->workers[m->rank].life != m->life)
        return;
    snprintf(why, sizeof(why), "hangs: no gradient for step %llu within the round-timeout",
             (unsigned long long)m->step);
    control_lose(shard, job, m->rank, why, now, out);
}

void
shard_mail(struct shard *shard, struct mail *m, int64_t now, struct outbox *out)
{
    if (m->type == MAIL_ROUND_LATE) {
        round_is_late(shard, m, now, out);
        mail_destroy(m);
        return;
    }
    if (m->type == MAIL_NONFINITE) {
        control_nonfinite(shard, m);
        mail_destroy(m);
        return;
    }
    if (m->ack) {
        pending_acknowledge(shard, m, now, out);
        mail_destroy(m);
        return;
    }
    mail_apply(shard, m, now, out);
    if (!m->seq) {
        mail_destroy(m);
        return;
    }
    m->ack = true;
    m->from = shard->index;
    m->to = 0;
    outbox_add_mail(out, m);
}

static void
report_late(struct shard *shard, const struct view *v, const struct slice *s, int64_t now,
            struct outbox *out)
{
    uint32_t ranks[DT_MAX_WAITED_RANKS];
    uint32_t i, n = slice_missing(s, v->job, ranks, DT_MAX_WAITED_RANKS);

    for (i = 0; i < n && i < DT_MAX_WAITED_RANKS; i++) {
        struct mail *m = mail_create(MAIL_ROUND_LATE, v->id);

        if (!m)
            return;
        m->rank = ranks[i];
        m->life = ranks[i] < v->n_ranks ? v->ranks[ranks[i]].life : 0;
        m->step = slice_version(s);
        m->from = shard->index;
        if (shard->index == 0) {
            round_is_late(shard, m, now, out);
            mail_destroy(m);
        } else {
            outbox_add_mail(out, m);
        }
    }
}

static struct slice *
find_late(const struct shard *shard, const struct job *job)
{
    int64_t before = shard_running_ms(shard) - job->params.round_timeout_ms;
    uint32_t i, k;

    for (i = 0; i < job->n_variables; i++) {
        for (k = 0; k < job->variables[i].n_slices; k++) {
            struct slice *s = job->variables[i].slices[k];

            if (s && s->round.n_pushed && s->round.opened_ms <= before)
                return s;
        }
    }
    return NULL;
}

static void
check_rounds(struct shard *shard, int64_t now, struct outbox *out)
{
    struct view *v;

    for (v = shard->views; v; v = v->hh.next) {
        struct slice *s;

        if (v->job->params.round_timeout_ms <= 0 || v->job->state != JOB_OPEN)
            continue;
        s = find_late(shard, v->job);
        if (!s)
            continue;
        s->round.opened_ms = shard_running_ms(shard); /* report again after another span */
        report_late(shard, v, s, now, out);
    }
}

/* A worker that still takes part; readers and those that have left may be gone without a word. */
static bool
is_awaited(const struct session *s)
{
    return s->rank != DT_NO_RANK && s->view->job->state == JOB_OPEN &&
           !membership_has_left(&s->view->job->membership, s->rank);
}

static bool
is_idle_for_good(const struct shard *shard, const struct session *s)
{
    return !is_awaited(s) && !s->parked && shard_running_ms(shard) - s->seen_ms > IDLE_SESSION_MS;
}

static void
check_sessions(struct shard *shard, int64_t now)
{
    struct session *s, *next;

    if (now - shard->sessions_ms < CHECK_SESSIONS_MS)
        return;
    shard->sessions_ms = now;
    for (s = shard->sessions; s; s = next) {
        next = s->hh.next;
        if (is_idle_for_good(shard, s))
            session_end(shard, s);
    }
}

void
shard_flush(struct shard *shard, struct outbox *out)
{
    struct session *s, *next;

    for (s = shard->queued; s; s = next) {
        next = s->next_queued;
        session_flush(shard, s, out);
    }
}

static bool
has_parked(const struct view *v)
{
    const struct session *s;

    for (s = v->sessions; s; s = s->next) {
        if (s->parked)
            return true;
    }
    return false;
}

/* Locking none: another shard may have made the version that a request here waits for. */
static void
check_racy(struct shard *shard, struct outbox *out)
{
    struct view *v;

    for (v = shard->views; v; v = v->hh.next) {
        if (view_is_racy(v) && has_parked(v))
            view_settle(shard, v, out);
    }
}

/* Time in which psd did not turn (SIGSTOP, a slow disk) does not run. */
static void
run_clock(struct shard *shard, int64_t now)
{
    int64_t span = shard->last_tick_ms < 0 ? 0 : now - shard->last_tick_ms;

    shard->last_tick_ms = now;
    if (shard->index == 0)
        atomic_fetch_add(&shard->shared->running_ms, span < MAX_TURN_MS ? span : MAX_TURN_MS);
}

static void
say_goodbye(struct session *s, struct outbox *out)
{
    struct reply_to to = session_reply_to(s, DT_OP_GOODBYE, 0);

    while (s->parked)
        parked_refuse(s->parked, DT_R_GOING_DOWN, "psd is shutting down", out);
    reply_status(out, &to, DT_R_GOING_DOWN, "psd is shutting down", view_step(s->view));
}

/* A peer that has gone meanwhile is found out by a send that fails. */
static void
repeat_goodbye(struct shard *shard, int64_t now, struct outbox *out)
{
    struct session *s;

    if (now - shard->goodbye_ms < REPEAT_GOODBYE_MS)
        return;
    shard->goodbye_ms = now;
    for (s = shard->sessions; s; s = s->hh.next) {
        if (!s->acknowledged)
            say_goodbye(s, out);
    }
}

void
shard_tick(struct shard *shard, int64_t now, struct outbox *out)
{
    run_clock(shard, now);
    stages_tick(&shard->stages);
    check_sessions(shard, now);
    shard_flush(shard, out);
    untaken_tick(shard);
    nonfinite_tick(shard, out);
    if (shard->stopping) {
        repeat_goodbye(shard, now, out);
        return;
    }
    if (shard->control)
        control_tick(shard, now, out);
    check_rounds(shard, now, out);
    check_racy(shard, out);
}

void
shard_undelivered(struct shard *shard, struct reply *r, enum dt_sent why, int64_t now,
                  struct outbox *out)
{
    struct session *s = session_find(shard, r->peer_class, &r->route);

    (void)now;
    (void)out;
    if (!s) {
        reply_destroy(r);
        return;
    }
    if (why == DT_SENT_FULL && r->keep) {
        session_requeue(shard, s, r);
        return;
    }
    if (why == DT_SENT_FULL)
        dt_log(DT_LOG_WARNING, "job %s rank %u does not take its replies: session ended",
               s->view->job->name, s->rank);
    reply_destroy(r);
    session_end(shard, s);
}

static void
refuse_waits(struct shard *shard, struct outbox *out)
{
    struct control_job *job;

    for (job = shard->control->jobs; job; job = job->next)
        control_refuse_waits(job, DT_R_GOING_DOWN, "psd is shutting down", out);
}

void
shard_stop(struct shard *shard, int64_t now, struct outbox *out)
{
    struct session *s;

    shard->stopping = true;
    shard->goodbye_ms = now;
    if (shard->control)
        refuse_waits(shard, out);
    for (s = shard->sessions; s; s = s->hh.next)
        say_goodbye(s, out);
}

uint32_t
shard_n_unacknowledged(const struct shard *shard)
{
    const struct session *s;
    uint32_t n = 0;

    for (s = shard->sessions; s; s = s->hh.next)
        n += !s->acknowledged;
    return n;
}

bool
shard_shutdown_wanted(const struct shard *shard)
{
    return shard->control && shard->control->shutdown;
}

void
shard_summary(const struct shard *shard, char *out, size_t bytes)
{
    const struct control_job *job;
    uint32_t n_jobs = 0, n_workers = 0;
    uint64_t step = 0;

    for (job = shard->control->jobs; job; job = job->next) {
        if (job->closing)
            continue;
        n_jobs++;
        n_workers += control_n_live(job);
        if (view_step(job->view) > step)
            step = view_step(job->view);
    }
    snprintf(out, bytes, "%u job%s, %u worker%s, step %llu", n_jobs, n_jobs == 1 ? "" : "s",
             n_workers, n_workers == 1 ? "" : "s", (unsigned long long)step);
}
