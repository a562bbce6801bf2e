/*
 * apply.c - a change that shard 0 posted, applied to this shard's replica. Runs on the shard's thread;
 * shard 0 calls it for itself.
 */
#include <string.h>

#include "psd/store/clock.h"
#include "psd/serve/control.h"
#include "psd/serve/parked.h"
#include "psd/serve/session.h"
#include "psd/serve/status_body.h"

typedef void apply_fn(struct shard *shard, struct view *view, struct mail *m, struct outbox *out);

static void
apply_close(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)m;
    (void)out;
    view_destroy(shard, v);
}

static void
apply_attach(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    struct attached *a = view_require_rank(v, m->rank);

    (void)out;
    if (!a) {
        m->status = DT_R_QUOTA;
        return;
    }
    if (a->session && a->life != m->life)
        session_end(shard, a->session);
    a->life = m->life;
    a->window = shard_window(shard);
    a->bad_in_row = 0;
    a->ended = false;
    memcpy(a->uuid, m->uuid, DT_UUID_BYTES);
}

static void
for_each_slice(struct job *job, void (*what)(struct slice *, struct job *, struct mail *),
               struct mail *m)
{
    uint32_t i, k;

    for (i = 0; i < job->n_variables; i++) {
        const struct variable *var = &job->variables[i];

        for (k = 0; k < var->n_slices; k++) {
            if (var->slices[k])
                what(var->slices[k], job, m);
        }
    }
}

static void
restart(struct slice *s, struct job *job, struct mail *m)
{
    (void)job;
    clock_restart(s, m->rank);
}

static void
raise_clock(struct slice *s, struct job *job, struct mail *m)
{
    if (!clock_raise(s, job, m->rank, m->step))
        m->status = DT_R_QUOTA;
}

static void
apply_clock(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    if (m->rank != DT_NO_RANK)
        for_each_slice(v->job, raise_clock, m);
    view_settle(shard, v, out);
}

static uint64_t
highest_version(const struct job *job)
{
    uint64_t highest = 0;
    uint32_t i, k;

    for (i = 0; i < job->n_variables; i++) {
        const struct variable *var = &job->variables[i];

        for (k = 0; k < var->n_slices; k++) {
            if (var->slices[k] && slice_version(var->slices[k]) > highest)
                highest = slice_version(var->slices[k]);
        }
    }
    return highest;
}

/* The answer tells the highest version before the change: if a round of `step` was open already,
 * shard 0 repeats with a later one. */
static void
apply_join(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    uint64_t first = m->step;

    m->step = highest_version(v->job);
    for_each_slice(v->job, restart, m);
    if (!membership_join(&v->job->membership, m->rank, first))
        m->status = DT_R_QUOTA;
    view_settle(shard, v, out);
}

static void
end_rank_session(struct shard *shard, struct view *v, uint32_t rank)
{
    if (rank < v->n_ranks) {
        if (v->ranks[rank].session)
            session_end(shard, v->ranks[rank].session);
        v->ranks[rank].life = 0;
    }
}

static void
apply_turn_away(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)shard;
    (void)out;
    if (m->rank < v->n_ranks)
        v->ranks[m->rank].ended = true;
}

static void
apply_leave(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    apply_turn_away(shard, v, m, out);
    membership_leave(&v->job->membership, m->rank, m->step);
    if (m->rank < v->n_ranks && v->ranks[m->rank].session) {
        struct session *s = v->ranks[m->rank].session;

        while (s->parked)
            parked_destroy(s->parked);
    }
    view_settle(shard, v, out);
}

static void
apply_strike(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    membership_strike(&v->job->membership, m->rank);
    end_rank_session(shard, v, m->rank);
    view_settle(shard, v, out);
}

static void
apply_declare(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)out;
    if (!job_declare(v->job, shard->index))
        m->status = DT_R_QUOTA;
}

static void
forget_values(struct job *job)
{
    uint32_t i, k;

    for (i = 0; i < job->n_variables; i++) {
        struct variable *var = &job->variables[i];

        for (k = 0; k < var->n_slices; k++) {
            if (var->slices[k] && slice_forget(var->slices[k]))
                atomic_fetch_sub(&job->shared->n_initialised, 1);
        }
    }
}

static void
apply_grant(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)shard;
    (void)out;
    if (v->job->initialised)
        return;
    v->grant_rank = m->rank;
    v->grant_life = m->life;
    forget_values(v->job);
}

static void
apply_initialised(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)m;
    v->grant_rank = DT_NO_RANK;
    v->job->initialised = true;
    view_settle(shard, v, out);
}

static void
refuse_parked(struct view *v, enum dt_status status, const char *text, struct outbox *out)
{
    struct session *s;

    for (s = v->sessions; s; s = s->next) {
        while (s->parked)
            parked_refuse(s->parked, status, text, out);
    }
}

static void
apply_state(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)shard;
    v->job->state = m->state;
    memcpy(v->job->reason, m->text, sizeof(v->job->reason));
    if (m->state == JOB_FAILED)
        refuse_parked(v, DT_R_JOB_FAILED, m->text, out);
    else if (m->state == JOB_COMPLETE)
        refuse_parked(v, DT_R_JOB_COMPLETE, "the job is complete", out);
}

static void
apply_barrier(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)shard;
    (void)v;
    (void)m;
    (void)out;
}

static void
apply_status(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    (void)out;
    m->n_body = status_waiting(shard, v, &m->body);
}

/* With a step that is too early already it will be asked again. */
static void
apply_hold(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    v->job->hold = m->step;
    m->step = highest_version(v->job);
    view_settle(shard, v, out);
}

static void
apply_set(struct shard *shard, struct view *v, struct mail *m, struct outbox *out)
{
    bool ok = true;
    uint32_t i;

    if (!strcmp(m->set.key, "max_staleness"))
        ok = setting_add(&v->job->max_staleness, m->set.from, m->set.value);
    else if (!strcmp(m->set.key, "lr"))
        for (i = 0; i < v->job->n_variables; i++) {
            if (set_concerns(&m->set, &v->job->variables[i]))
                ok = setting_add(&v->job->variables[i].lr, m->set.from, m->set.value) && ok;
        }
    if (!ok)
        m->status = DT_R_QUOTA;
    v->job->hold = JOB_NO_HOLD;
    view_settle(shard, v, out);
}

static apply_fn *const table[N_MAIL_TYPES] = {
    [MAIL_CLOSE] = apply_close,
    [MAIL_ATTACH] = apply_attach,
    [MAIL_JOIN] = apply_join,
    [MAIL_LEAVE] = apply_leave,
    [MAIL_TURN_AWAY] = apply_turn_away,
    [MAIL_STRIKE] = apply_strike,
    [MAIL_DECLARE] = apply_declare,
    [MAIL_GRANT] = apply_grant,
    [MAIL_INITIALISED] = apply_initialised,
    [MAIL_STATE] = apply_state,
    [MAIL_CLOCK] = apply_clock,
    [MAIL_BARRIER] = apply_barrier,
    [MAIL_STATUS] = apply_status,
    [MAIL_HOLD] = apply_hold,
    [MAIL_SET] = apply_set,
};

void
mail_apply(struct shard *shard, struct mail *m, int64_t now, struct outbox *out)
{
    struct view *v = view_find(shard, m->job_id);

    (void)now;
    m->status = DT_OK;
    if (m->type == MAIL_OPEN) {
        if (!v && !view_create(shard, m))
            m->status = DT_R_QUOTA;
    } else if (m->type == MAIL_STAGES) {
        stages_write(&shard->stages, shard->index, &m->body);
        m->n_body = 1;
    } else if (v && table[m->type]) {
        table[m->type](shard, v, m, out);
    }
}
