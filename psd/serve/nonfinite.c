/*
 * nonfinite.c - variables with NaN or Inf: each shard finds its own by tick and tells shard 0, which says it once a
 * variable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "psd/serve/control.h"

#define MAX_TOLD 256 /* in a status */

static bool
is_known(const struct control_job *job, const char *variable)
{
    uint32_t i;

    for (i = 0; i < job->n_nonfinite; i++) {
        if (!strcmp(job->nonfinite[i].variable, variable))
            return true;
    }
    return false;
}

static void
log_report(const struct control_job *job, const struct nonfinite_report *r)
{
    dt_log(DT_LOG_WARNING,
           "job %s: variable %s: NaN or Inf in its %s%s, found at step %llu after a gradient of up "
           "to %.3g from rank %u: begin again (--fresh) with a lower rate, or clip gradients",
           job->view->job->name, r->variable, r->slot[0] ? "slot " : "values", r->slot,
           (unsigned long long)r->step, r->largest, r->rank);
}

void
control_nonfinite(struct shard *shard, const struct mail *m)
{
    struct control_job *job = control_find(shard, m->job_id);
    struct nonfinite_report *grown;

    if (!job || is_known(job, m->nonfinite.variable))
        return;
    grown = realloc(job->nonfinite, (job->n_nonfinite + 1) * sizeof(*grown));
    if (!grown)
        return;
    job->nonfinite = grown;
    job->nonfinite[job->n_nonfinite++] = m->nonfinite;
    log_report(job, &m->nonfinite);
}

static void
report(struct shard *shard, const struct view *v, const struct slice *s, struct outbox *out)
{
    const struct variable *var = s->variable;
    const struct nonfinite *f = &s->nonfinite;
    struct mail *m = mail_create(MAIL_NONFINITE, v->id);

    if (!m)
        return;
    m->from = shard->index;
    snprintf(m->nonfinite.variable, sizeof(m->nonfinite.variable), "%s", var->declared->decl.name);
    if (f->slot < OPTIMIZER_MAX_SLOTS)
        snprintf(m->nonfinite.slot, sizeof(m->nonfinite.slot), "%s",
                 optimizer_slot_name(&var->optimizer, f->slot));
    m->nonfinite.rank = f->rank;
    m->nonfinite.largest = (double)f->largest;
    m->nonfinite.step = f->step;
    if (shard->index == 0) {
        control_nonfinite(shard, m);
        mail_destroy(m);
    } else {
        outbox_add_mail(out, m);
    }
}

static void
report_variable(struct shard *shard, const struct view *v, const struct variable *var,
                struct outbox *out)
{
    bool told = false;
    uint32_t k;

    for (k = 0; k < var->n_slices; k++) {
        struct slice *s = var->slices[k];

        if (!s || !s->nonfinite.found || s->nonfinite.told)
            continue;
        s->nonfinite.told = true;
        if (!told)
            report(shard, v, s, out);
        told = true;
    }
}

void
nonfinite_tick(struct shard *shard, struct outbox *out)
{
    struct view *v;
    uint32_t i;

    for (v = shard->views; v; v = v->hh.next) {
        if (!v->job->has_nonfinite)
            continue;
        v->job->has_nonfinite = false;
        for (i = 0; i < v->job->n_variables; i++)
            report_variable(shard, v, &v->job->variables[i], out);
    }
}

void
nonfinite_write(const struct control_job *job, struct dt_buffer *b)
{
    uint32_t i, n = job->n_nonfinite < MAX_TOLD ? job->n_nonfinite : MAX_TOLD;

    dt_write_array(b, n);
    for (i = 0; i < n; i++) {
        const struct nonfinite_report *r = &job->nonfinite[i];

        dt_write_map(b, 5);
        dt_write_str(b, "variable");
        dt_write_str(b, r->variable);
        dt_write_str(b, "slot");
        dt_write_str(b, r->slot);
        dt_write_str(b, "rank");
        dt_write_u64(b, r->rank);
        dt_write_str(b, "largest");
        dt_write_double(b, r->largest);
        dt_write_str(b, "step");
        dt_write_u64(b, r->step);
    }
}
