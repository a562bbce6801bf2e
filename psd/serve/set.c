/*
 * set.c - the operator's SET: a learning rate or the bound on staleness of a live job, from a named step on.
 * Shard 0, admin socket only; apply.c has what the other shards do.
 *
 * In a synchronous job all slices change at the same version, on whatever shard: first every shard is told to keep
 * rounds of that step open (MAIL_HOLD) and answers how far it is; when none is past it the change goes to all, with
 * the release (MAIL_SET). A shard that was past it makes us ask again with a later step. In an asynchronous job the
 * job's global step decides, and there is nothing to agree on.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/set.h"
#include "psd/serve/call.h"
#include "psd/serve/control.h"

#define MOST_STALENESS 9007199254740992.0 /* 2^53: a double counts so far */

/* The variable of that name, or a part of one that is cut into parts. */
static bool
is_named(const char *declared, const char *name)
{
    size_t n = strlen(name);

    return n == 0 || (!strncmp(declared, name, n) &&
                      (declared[n] == '\0' || !strncmp(declared + n, "/part_", 6)));
}

bool
set_concerns(const struct control_set *set, const struct variable *v)
{
    return is_named(v->declared->decl.name, set->variable) && v->n_slices > 0 &&
           optimizer_has_rate(v->declared->decl.optimizer);
}

/* Of one variable that is meant. A rule without a rate is only passed over when all variables are meant; what is on
 * another ps task, unless it is what was named: parts of one variable are on several. */
static enum dt_status
check_variable(const struct dt_admin_set *m, const struct variable *v, struct dt_error *err)
{
    const char *name = v->declared->decl.name;

    if (v->n_slices == 0)
        return !strcmp(m->variable, name)
                   ? dt_fail(err, DT_R_BAD_VALUE, "variable %s is on ps task %u: ask that psd",
                             name, v->declared->decl.task)
                   : DT_OK;
    if (!m->variable[0] && !optimizer_has_rate(v->declared->decl.optimizer))
        return DT_OK;
    if (optimizer_check_rate(&v->optimizer, (float)m->value, err) != DT_OK)
        return dt_fail_prefix(err, "variable %s", name);
    return DT_OK;
}

static enum dt_status
check_lr(const struct dt_admin_set *m, const struct job *job, struct dt_error *err)
{
    struct control_set set = {0};
    uint32_t i, n = 0, named = 0;

    if (fabs(m->value) > (double)FLT_MAX)
        return dt_fail(err, DT_R_BAD_VALUE, "lr is %g, must be finite as a float32", m->value);
    snprintf(set.variable, sizeof(set.variable), "%s", m->variable);
    for (i = 0; i < job->n_variables; i++) {
        if (!is_named(job->variables[i].declared->decl.name, m->variable))
            continue;
        named++;
        if (check_variable(m, &job->variables[i], err) != DT_OK)
            return err->code;
        n += set_concerns(&set, &job->variables[i]);
    }
    if (!named)
        return dt_fail(err, DT_R_NO_VARIABLE, "job %s has no variable %s", job->name, m->variable);
    if (n == 0)
        return dt_fail(err, DT_R_BAD_VALUE, "job %s has no variable with a rate on this psd",
                       job->name);
    return DT_OK;
}

static enum dt_status
check_staleness(const struct dt_admin_set *m, const struct job *job, struct dt_error *err)
{
    if (m->variable[0])
        return dt_fail(err, DT_R_BAD_VALUE, "max_staleness is of the job, not of a variable");
    if (job->params.consistency == DT_SYNC)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "max_staleness: job %s is not asynchronous, it drops every past version",
                       job->name);
    if (!(m->value == floor(m->value)) || m->value < -1 || m->value > MOST_STALENESS)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "max_staleness is %g, must be a whole number, or -1 for any", m->value);
    return DT_OK;
}

/* ssp: all shards read one number, so it counts at once. */
static enum dt_status
check_bound(const struct dt_admin_set *m, const struct job *job, struct dt_error *err)
{
    if (job->params.consistency != DT_SSP)
        return dt_fail(err, DT_R_BAD_VALUE, "staleness_bound: job %s is not ssp", job->name);
    if (m->variable[0] || m->step != DT_NO_VERSION)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "staleness_bound is of the job and counts at once: leave variable and step "
                       "out");
    if (!(m->value == floor(m->value)) || m->value < 0 || m->value > (double)DT_MAX_CLOCK)
        return dt_fail(err, DT_R_BAD_VALUE, "staleness_bound is %g, must be a whole number",
                       m->value);
    return DT_OK;
}

static enum dt_status
check_step(const struct dt_admin_set *m, const struct control_job *job, struct dt_error *err)
{
    uint64_t now = view_step(job->view);

    if (m->step == DT_NO_VERSION)
        return DT_OK;
    if (m->step > UINT64_MAX / 2)
        return dt_fail(err, DT_R_BAD_VALUE, "SET: that is not a step");
    if (job->view->job->params.consistency != DT_SYNC && job->task > 0)
        return dt_fail(err, DT_R_BAD_VALUE,
                       "the global step of job %s is on ps task 0, this is task %u: leave the step "
                       "out",
                       job->view->job->name, job->task);
    if (m->step < now)
        return dt_fail(err, DT_R_BAD_VALUE, "step %llu has passed: job %s is at %llu",
                       (unsigned long long)m->step, job->view->job->name, (unsigned long long)now);
    return DT_OK;
}

/* The oldest of SETTING_MAX changes goes when one more comes: not while it counts. */
static enum dt_status
check_room(const struct dt_admin_set *m, const struct job *job, uint64_t step, struct dt_error *err)
{
    bool full = !strcmp(m->key, "max_staleness") && setting_is_full(&job->max_staleness, step);
    uint32_t i;

    for (i = 0; i < job->n_variables && !strcmp(m->key, "lr"); i++)
        full = full || setting_is_full(&job->variables[i].lr, step);
    return full ? dt_fail(err, DT_R_BAD_VALUE, "%d changes of %s of job %s are to come: wait",
                          SETTING_MAX - 1, m->key, job->name)
                : DT_OK;
}

static enum dt_status
check(const struct dt_admin_set *m, const struct control_job *job, struct dt_error *err)
{
    const struct job *j = job->view->job;
    enum dt_status status;

    if (j->state != JOB_OPEN)
        return dt_fail(err, DT_R_BAD_VALUE, "job %s is %s", j->name,
                       j->state == JOB_FAILED ? "failed" : "complete");
    if (!job->shared->declared || j->n_variables == 0)
        return dt_fail(err, DT_R_NOT_INITIALISED, "job %s has no variables yet", j->name);
    if (job->set_under_way)
        return dt_fail(err, DT_R_BAD_VALUE, "another change of job %s is under way: ask again",
                       j->name);
    if (!strcmp(m->key, "lr"))
        status = check_lr(m, j, err);
    else if (!strcmp(m->key, "max_staleness"))
        status = check_staleness(m, j, err);
    else if (!strcmp(m->key, "staleness_bound"))
        status = check_bound(m, j, err);
    else
        return dt_fail(err, DT_R_BAD_VALUE,
                       "SET: unknown key %s; known: lr, max_staleness, staleness_bound", m->key);
    if (status == DT_OK)
        status = check_room(m, j, view_step(job->view), err);
    return status == DT_OK ? check_step(m, job, err) : status;
}

/* For status: the last CONTROL_MAX_SETS of them. */
static void
remember(struct control_job *job, const struct control_set *set)
{
    if (!job->sets)
        job->sets = calloc(CONTROL_MAX_SETS, sizeof(*job->sets));
    if (!job->sets)
        return;
    if (job->n_sets == CONTROL_MAX_SETS)
        memmove(job->sets, job->sets + 1, --job->n_sets * sizeof(*job->sets));
    job->sets[job->n_sets++] = *set;
}

static void
log_set(const struct control_job *job, const struct control_set *set)
{
    char value[32];

    snprintf(value, sizeof(value), "%.9g", set->value);
    dt_log(DT_LOG_NOTICE, "job %s: the operator sets %s to %s%s%s from %s %llu on",
           job->view->job->name, set->key, value, set->variable[0] ? " of " : "", set->variable,
           job->view->job->params.consistency == DT_SYNC ? "step" : "global step",
           (unsigned long long)set->from);
}

static struct mail *
make_mail(enum mail_type type, uint64_t job_id, const struct control_set *set)
{
    struct mail *m = mail_create(type, job_id);

    if (!m)
        abort();
    m->set = *set;
    m->step = set->from;
    return m;
}

static struct pending *
make_pending(pending_fn *done, const struct reply_to *to, uint64_t job_id,
             const struct control_set *set)
{
    struct pending *p = pending_create(done, to, job_id);
    struct control_set *copy = malloc(sizeof(*copy));

    if (!p || !copy)
        abort();
    *copy = *set;
    p->arg = copy;
    p->value = set->from;
    return p;
}

static void
set_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);
    const struct control_set *set = p->arg;

    (void)now;
    if (!job) {
        reply_status(out, &p->to, DT_R_NO_JOB, "the job is gone", 0);
        return;
    }
    job->set_under_way = false;
    if (p->status != DT_OK) {
        reply_status(out, &p->to, p->status, "psd is short of memory", 0);
        return;
    }
    remember(job, set);
    log_set(job, set);
    reply_step(out, &p->to, view_step(job->view), set->from);
}

static void held_everywhere(struct shard *shard, struct pending *p, int64_t now,
                            struct outbox *out);

static void
post(struct shard *shard, enum mail_type type, const struct reply_to *to, uint64_t job_id,
     const struct control_set *set, int64_t now, struct outbox *out)
{
    pending_fn *done = type == MAIL_HOLD ? held_everywhere : set_everywhere;

    post_all(shard, make_mail(type, job_id, set), make_pending(done, to, job_id, set), now, out);
}

static void
held_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_set set = *(const struct control_set *)p->arg;

    if (!control_find(shard, p->job_id)) {
        reply_status(out, &p->to, DT_R_NO_JOB, "the job is gone", 0);
        return;
    }
    if (p->step > set.from) {
        set.from = p->step + 2;
        post(shard, MAIL_HOLD, &p->to, p->job_id, &set, now, out);
        return;
    }
    post(shard, MAIL_SET, &p->to, p->job_id, &set, now, out);
}

void
handle_admin_set(struct call *c)
{
    struct dt_error err = {DT_OK, ""};
    struct control_set set = {0};
    struct control_job *job;
    struct dt_admin_set m;
    bool sync;

    if (dt_admin_set_decode(&c->head, &m) != DT_OK) {
        reply_status(c->out, &c->to, DT_R_MALFORMED,
                     "ADMIN_SET: not a job, a key, a value, a variable and a step", 0);
        return;
    }
    job = control_find_name(c->shard, m.job);
    if (!job) {
        reply_reject(c->out, &c->to, DT_R_NO_JOB, "there is no job %s", m.job);
        return;
    }
    if (check(&m, job, &err) != DT_OK) {
        reply_status(c->out, &c->to, err.code, err.text, view_step(job->view));
        return;
    }
    sync = job->view->job->params.consistency == DT_SYNC;
    snprintf(set.key, sizeof(set.key), "%s", m.key);
    snprintf(set.variable, sizeof(set.variable), "%s", m.variable);
    set.value = m.value;
    set.from = m.step != DT_NO_VERSION ? m.step : 0;
    if (set.from < view_step(job->view) + (sync ? 2 : 0)) /* as for a JOIN: two steps ahead */
        set.from = view_step(job->view) + (sync ? 2 : 0);
    if (!strcmp(set.key, "staleness_bound")) /* MAIL_SET makes every shard look at who waits */
        atomic_store(&job->shared->staleness_bound, (uint64_t)set.value);
    job->set_under_way = true;
    post(c->shard, sync ? MAIL_HOLD : MAIL_SET, &c->to, job->id, &set, c->now, c->out);
}
