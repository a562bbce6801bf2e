/*
 * placement.c - the operator's question where the variables of a job are held. Shard 0, admin socket
 * only: the declarations with the homes of all slices are immutable and shard 0 has them.
 *
 * A reply is one page: DT_PLACEMENT_PAGE variables, the longest of which take less than 4 KiB each, so
 * that a page always fits into a body.
 */
#include "proto/wire/placement.h"

#include "psd/serve/call.h"
#include "psd/serve/control.h"

struct load { /* of one variable, by shard */
    uint64_t slices[DT_MAX_SHARDS];
    uint64_t bytes[DT_MAX_SHARDS];
};

static void
write_params(const struct dt_declaration *d, struct dt_buffer *b)
{
    uint32_t i;

    dt_write_map(b, d->n_params);
    for (i = 0; i < d->n_params; i++) {
        dt_write_str(b, d->params[i].name);
        dt_write_float(b, d->params[i].value);
    }
}

static void
write_declaration(const struct declared_variable *v, struct dt_buffer *b)
{
    uint32_t i;

    dt_write_str(b, "name");
    dt_write_str(b, v->decl.name);
    dt_write_str(b, "shape");
    dt_write_array(b, v->decl.n_dims);
    for (i = 0; i < v->decl.n_dims; i++)
        dt_write_u64(b, v->decl.shape[i]);
    dt_write_str(b, "elements");
    dt_write_u64(b, v->elements);
    dt_write_str(b, "bytes");
    dt_write_u64(b, v->elements * sizeof(float));
    dt_write_str(b, "optimizer");
    dt_write_str(b, v->decl.optimizer);
    dt_write_str(b, "params");
    write_params(&v->decl, b);
    dt_write_str(b, "ps_task");
    dt_write_u64(b, v->decl.task);
}

static void
write_numbers(const char *key, const uint64_t *numbers, uint32_t n, struct dt_buffer *b)
{
    uint32_t i;

    dt_write_str(b, key);
    dt_write_array(b, n);
    for (i = 0; i < n; i++)
        dt_write_u64(b, numbers[i]);
}

static void
add_slice(struct load *load, uint32_t shard, const struct declared_variable *v, uint32_t slice)
{
    load->slices[shard]++;
    load->bytes[shard] += dt_slice_elements(v->elements, slice) * sizeof(float);
}

/* Empty arrays: another ps task holds it. Locking none: every shard serves every slice. */
static void
write_homes(const struct declared_variable *v, uint32_t n_shards, struct dt_buffer *b)
{
    uint32_t i, k, n = v->n_slices ? n_shards : 0;
    struct load load = {{0}, {0}};

    for (i = 0; i < v->n_slices; i++) {
        for (k = 0; k < n_shards; k++) {
            if (!v->homes || v->homes[i] == k)
                add_slice(&load, k, v, i);
        }
    }
    write_numbers("shard_slices", load.slices, n, b);
    write_numbers("shard_bytes", load.bytes, n, b);
}

static void
write_variables(const struct declared *d, uint32_t first, uint32_t n, uint32_t n_shards,
                struct dt_buffer *b)
{
    uint32_t i;

    dt_write_str(b, "variables");
    dt_write_array(b, n);
    for (i = first; i < first + n; i++) {
        dt_write_map(b, 10);
        dt_write_str(b, "id");
        dt_write_u64(b, i);
        write_declaration(&d->variables[i], b);
        write_homes(&d->variables[i], n_shards, b);
    }
}

static const char *
locking_name(uint32_t locking)
{
    static const char *const names[] = {
        [DT_LOCK_SLICE] = "slice", [DT_LOCK_NONE] = "none", [DT_LOCK_VARIABLE] = "variable"};

    return locking < sizeof(names) / sizeof(names[0]) ? names[locking] : "?";
}

static void
write_page(const struct control_job *job, uint32_t first, uint32_t n_shards, struct dt_buffer *b)
{
    const struct dt_job_params *params = &job->view->job->params;
    const struct declared *d = job->shared->declared;
    uint32_t n_all = d ? d->n : 0, n = first < n_all ? n_all - first : 0;

    if (n > DT_PLACEMENT_PAGE)
        n = DT_PLACEMENT_PAGE;
    dt_write_map(b, 9);
    dt_write_str(b, "name");
    dt_write_str(b, job->view->job->name);
    dt_write_str(b, "job_id");
    dt_write_u64(b, job->id);
    dt_write_str(b, "ps_task");
    dt_write_u64(b, job->task);
    dt_write_str(b, "ps_tasks");
    dt_write_u64(b, params->tasks);
    dt_write_str(b, "shards");
    dt_write_u64(b, n_shards);
    dt_write_str(b, "locking");
    dt_write_str(b, locking_name(params->locking));
    dt_write_str(b, "n_variables");
    dt_write_u64(b, n_all);
    write_variables(d, first, n, n_shards, b);
    dt_write_str(b, "next");
    if (first + n < n_all && n)
        dt_write_u64(b, first + n);
    else
        dt_write_nil(b);
}

void
handle_admin_placement(struct call *c)
{
    enum dt_status status;
    struct dt_buffer body = {0};
    struct control_job *job;
    struct dt_placement m;

    status = dt_placement_decode(&c->head, &m);
    if (status != DT_OK) {
        reply_reject(c->out, &c->to, status, "ADMIN_PLACEMENT: %s", dt_status_text(status));
        return;
    }
    job = control_find_name(c->shard, m.job);
    if (!job) {
        reply_reject(c->out, &c->to, DT_R_NO_JOB, "there is no job %s", m.job);
        return;
    }
    write_page(job, m.first, c->shard->shared->config.n_shards, &body);
    reply_body(c->out, &c->to, &body, view_step(job->view));
}
