/*
 * declare.c - DECLARE: the job's variables; the first worker's list counts, all others must be equal.
 * Shard 0 chooses the homes of the slices.
 */
#include <stdlib.h>
#include <string.h>

#include "psd/serve/call.h"
#include "psd/serve/control.h"

struct list {
    struct dt_declaration *items; /* owned */
    uint32_t n;
};

static enum dt_status
decode_list(const struct call *c, struct list *l, struct dt_error *err)
{
    struct dt_reader r;
    uint32_t i, n;

    dt_reader_init(&r, c->req->frames[0].p, c->req->frames[0].bytes);
    n = dt_read_array(&r, DT_MAX_VARIABLES);
    if (r.failed || n == 0)
        return dt_fail(err, DT_R_MALFORMED, "DECLARE: the body is no array of 1 to %d declarations",
                       DT_MAX_VARIABLES);
    /* A declaration takes more than 16 bytes: the array is bounded by what was received. */
    if (n > c->req->frames[0].bytes / 16 + 1)
        return dt_fail(err, DT_R_MALFORMED, "DECLARE: more declarations than the body can hold");
    l->items = calloc(n, sizeof(*l->items));
    if (!l->items)
        return dt_fail(err, DT_R_QUOTA, "psd is short of memory");
    l->n = n;
    for (i = 0; i < n; i++) {
        enum dt_status status = dt_declaration_decode(&r, &l->items[i], err);

        if (status != DT_OK)
            return status;
    }
    return DT_OK;
}

static enum dt_status
check_list(const struct list *l, const struct dt_job_params *params, struct dt_error *err)
{
    struct optimizer o;
    uint32_t i, k;

    for (i = 0; i < l->n; i++) {
        const struct dt_declaration *d = &l->items[i];

        if (dt_declaration_elements(d) == 0)
            return dt_fail(err, DT_R_BAD_VALUE, "variable %s has no elements or too many", d->name);
        if (d->task >= params->tasks)
            return dt_fail(err, DT_R_BAD_VALUE, "variable %s: task %u of %u", d->name, d->task,
                           params->tasks);
        if (declared_optimizer(d, &o, err) != DT_OK)
            return err->code;
        if (params->locking == DT_LOCK_NONE && !optimizer_can_race(d->optimizer))
            return dt_fail(err, DT_R_BAD_VALUE,
                           "variable %s: %s needs exclusion, the job has locking none", d->name,
                           d->optimizer);
        if (params->locking == DT_LOCK_VARIABLE &&
            dt_n_slices(dt_declaration_elements(d)) > DT_MAX_ITEMS)
            return dt_fail(err, DT_R_BAD_VALUE,
                           "variable %s: with locking variable it travels as one message of at "
                           "most 64 MiB: cut it into parts (--partition, dtw_partition)",
                           d->name);
        for (k = 0; k < i; k++) {
            if (!strcmp(l->items[k].name, d->name))
                return dt_fail(err, DT_R_BAD_VALUE, "variable %s is declared twice", d->name);
        }
    }
    return DT_OK;
}

static enum dt_status
compare_list(const struct declared *d, const struct list *l, struct dt_error *err)
{
    struct dt_error first = {DT_OK, ""};
    uint32_t i;

    for (i = 0; i < l->n && i < d->n; i++) {
        if (dt_declaration_compare(&d->variables[i].decl, &l->items[i], &first) != DT_OK)
            break;
    }
    if (d->n != l->n) /* other parts of the same variables: the first of them tells more */
        return dt_fail(err, DT_R_MISMATCH, "the job has %u variables, this worker declares %u%s%s",
                       d->n, l->n, first.text[0] ? "; " : "", first.text);
    return first.text[0] ? dt_fail(err, DT_R_MISMATCH, "%s", first.text) : DT_OK;
}

static enum dt_status
accept_list(struct call *c, struct control_job *job, const struct list *l, struct dt_error *err)
{
    const struct dt_job_params *params = &job->view->job->params;
    const struct declared_place where = {
        .task = job->task,
        .n_shards = c->shard->shared->config.n_shards,
        .together_bytes = c->shard->shared->config.together_bytes,
        .ranks = DT_MAX_RANKS, /* whoever may still join has a push row in each slice */
        .racy = params->locking == DT_LOCK_NONE,
        .whole = params->locking == DT_LOCK_VARIABLE,
        .held = params->deterministic ? params->workers - 1 : 0,
    };
    uint64_t quota = atomic_load(&c->shard->shared->limits.memory_quota);
    struct declared *d;
    uint64_t bytes;

    if (check_list(l, params, err) != DT_OK)
        return err->code;
    bytes = declared_charge(l->items, l->n, &where);
    if (bytes > quota)
        return dt_fail(
            err, DT_R_QUOTA,
            "the variables need %llu bytes%s, memory_quota allows a job %llu: raise it or use more "
            "ps tasks",
            (unsigned long long)bytes,
            where.held ? ", with the gradients that wait for rank order" : "",
            (unsigned long long)quota);
    d = declared_create(l->items, l->n, &where, c->shard->pool);
    if (!d)
        return dt_fail(err, DT_R_QUOTA, "psd is short of memory");
    job->shared->declared = d;
    return DT_OK;
}

/* Locking none: all slices are served by the one shard that serves this rank. */
static void
encode_home(const struct declared_variable *v, uint32_t shard, struct dt_buffer *body)
{
    uint8_t *homes;

    if (v->homes) {
        dt_write_bin(body, v->homes, v->n_slices);
        return;
    }
    homes = malloc(v->n_slices);
    if (!homes) {
        body->failed = true;
        return;
    }
    memset(homes, (int)shard, v->n_slices);
    dt_write_bin(body, homes, v->n_slices);
    free(homes);
}

static void
encode_homes(const struct declared *d, uint32_t task, uint32_t shard, struct dt_buffer *body)
{
    uint32_t i, n = 0;

    for (i = 0; i < d->n; i++)
        n += d->variables[i].decl.task == task;
    dt_write_array(body, n);
    for (i = 0; i < d->n; i++) {
        const struct declared_variable *v = &d->variables[i];

        if (v->decl.task != task)
            continue;
        dt_write_array(body, 3);
        dt_write_u64(body, i);
        dt_write_u64(body, i);
        encode_home(v, shard, body);
    }
}

static void
declared_everywhere(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    struct control_job *job = control_find(shard, p->job_id);
    struct dt_buffer body = {0};

    (void)now;
    if (!job || p->status != DT_OK) {
        reply_status(out, &p->to, job ? p->status : DT_R_NO_JOB, "the variables were not taken", 0);
        return;
    }
    encode_homes(job->shared->declared, job->task, shard_of_rank(shard, p->rank), &body);
    reply_body(out, &p->to, &body, view_step(job->view));
}

void
handle_declare(struct call *c)
{
    struct control_job *job = call_job(c);
    struct dt_error err = {DT_OK, ""};
    struct list l = {NULL, 0};
    struct pending *p;
    struct mail *m;

    if (!job)
        return;
    if (control_is_turned_away(job, c->session->rank))
        dt_fail(&err, DT_R_MISMATCH, "this worker was turned away: its declarations differed");
    else if (c->req->n_frames != 1)
        dt_fail(&err, DT_R_MALFORMED, "DECLARE has one body frame");
    else if (decode_list(c, &l, &err) != DT_OK)
        ;
    else if (job->shared->declared)
        compare_list(job->shared->declared, &l, &err);
    else if (c->session->rank == DT_NO_RANK || job->view->job->state != JOB_OPEN)
        dt_fail(&err, DT_R_NOT_INITIALISED, "the job has no variables yet");
    else
        accept_list(c, job, &l, &err);
    free(l.items);
    if (err.code == DT_R_MISMATCH && c->session->rank != DT_NO_RANK)
        control_turn_away(c->shard, job, c->session->rank, c->now, c->out);
    if (err.code != DT_OK) {
        reply_status(c->out, &c->to, err.code, err.text, view_step(job->view));
        return;
    }
    if (c->session->rank != DT_NO_RANK)
        job->workers[c->session->rank].declared = true;
    m = mail_create(MAIL_DECLARE, job->id); /* also as a barrier for those who come later */
    p = pending_create(declared_everywhere, &c->to, job->id);
    if (!m || !p)
        abort();
    p->rank = c->session->rank;
    post_all(c->shard, m, p, c->now, c->out);
}
