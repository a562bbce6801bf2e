/*
 * replay_store.c - the slices of a recorded job in this process.
 *
 * Invariant: a slice of the record is a variable of the job with one slice, so what was a part of a variable on
 * some shard of some ps task is updated as it was there. Threads: whoever has the turn.
 */
#include "worker/train/replay_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum dtw_status
fail(struct dtw_error *err, enum dtw_status code, const char *what)
{
    if (err) {
        err->code = code;
        snprintf(err->text, sizeof(err->text), "%s", what);
    }
    return code;
}

static bool
add_param(struct dt_declaration *d, const char *name, float value)
{
    if (d->n_params == DT_MAX_OPTIMIZER_PARAMS)
        return false;
    snprintf(d->params[d->n_params].name, sizeof(d->params[0].name), "%s", name);
    d->params[d->n_params++].value = value;
    return true;
}

enum dtw_status
replay_store_declare(struct replay_store *s, const struct dtw_variable *v, struct dtw_error *err)
{
    struct dt_declaration *d = &s->declared[s->n_variables];
    bool good = s->n_variables < MODEL_MAX_VARIABLES;
    uint64_t n = 1;

    if (!good)
        return fail(err, DTW_INVALID, "too many variables");
    memset(d, 0, sizeof(*d));
    snprintf(d->optimizer, sizeof(d->optimizer), "%s", v->optimizer ? v->optimizer : "sgd");
    if (v->lr >= 0)
        good = add_param(d, "lr", v->lr);
    for (unsigned i = 0; good && i < v->n_params; i++)
        good = add_param(d, v->params[i].name, v->params[i].value);
    if (!good)
        return fail(err, DTW_INVALID, "too many parameters of an optimizer");
    for (unsigned i = 0; i < v->n_dims; i++)
        n *= v->shape[i];
    d->n_dims = 1;
    snprintf(s->names[s->n_variables], sizeof(s->names[0]), "%s", v->name);
    s->elements[s->n_variables++] = n;
    return DTW_OK;
}

/* Do the recorded slices cover the variables of this model? record.c has checked their order. */
static bool
covers(const struct replay_store *s)
{
    uint64_t i = 0;

    for (uint32_t v = 0; v < s->n_variables; v++) {
        uint64_t n = 0;
        for (; i < s->n_slices && s->slices[i].variable == v; i++) {
            n += s->slices[i].n;
            if (s->slices[i].n > DT_SLICE_ELEMENTS)
                return false;
        }
        if (n != s->elements[v])
            return false;
    }
    return i == s->n_slices;
}

static struct declared *
declare_slices(const struct replay_store *s)
{
    const struct declared_place where = {.task = 0, .n_shards = 1, .ranks = 1, .racy = false};
    struct dt_declaration *list = calloc(s->n_slices, sizeof(*list));
    struct declared *d = NULL;

    for (uint64_t i = 0; list && i < s->n_slices; i++) {
        list[i] = s->declared[s->slices[i].variable];
        snprintf(list[i].name, sizeof(list[i].name), "%llu", (unsigned long long)i);
        list[i].shape[0] = s->slices[i].n;
    }
    if (list)
        d = declared_create(list, (uint32_t)s->n_slices, &where, s->pool);
    free(list);
    return d;
}

static bool
create_job(struct replay_store *s)
{
    struct dt_job_params params;

    dt_job_params_default(&params);
    params.consistency = DT_ASYNC;
    s->pool = dt_pool_create();
    s->shared = job_shared_create();
    if (!s->pool || !s->shared)
        return false;
    s->shared->declared = declare_slices(s);
    s->job = s->shared->declared ? job_create(1, "replay", &params, s->shared, s->pool) : NULL;
    return s->job && job_declare(s->job, 0);
}

static bool
set_values(struct replay_store *s, dtw_init_fn *fill, void *arg)
{
    bool good = true, first;
    uint64_t i = 0;

    for (uint32_t v = 0; good && v < s->n_variables; v++) {
        float *values = dtw_alloc(s->elements[v]);
        good = values != NULL;
        if (good)
            fill(arg, v, values, s->elements[v]);
        for (; good && i < s->n_slices && s->slices[i].variable == v; i++)
            good =
                slice_set(replay_store_slice(s, i), s->pool, values + s->slices[i].start, &first);
        dtw_free(values, s->elements[v]);
    }
    return good;
}

enum dtw_status
replay_store_init(struct replay_store *s, const struct record_slice *slices, uint64_t n_slices,
                  dtw_init_fn *fill, void *arg, struct dtw_error *err)
{
    struct dt_declaration *d;
    struct optimizer o;
    struct dt_error why;

    s->slices = slices;
    s->n_slices = n_slices;
    if (!covers(s))
        return fail(err, DTW_INVALID, "the recorded slices are not those of this model");
    for (uint32_t v = 0; v < s->n_variables; v++) {
        d = &s->declared[v];
        d->shape[0] = 1;
        memcpy(d->name, s->names[v], sizeof(d->name)); /* of the same size */
        if (declared_optimizer(d, &o, &why) != DT_OK)
            return fail(err, DTW_INVALID, why.text);
    }
    if (!create_job(s) || !set_values(s, fill, arg))
        return fail(err, DTW_NO_MEMORY, "memory is short");
    s->job->initialised = true;
    return DTW_OK;
}

void
replay_store_deinit(struct replay_store *s)
{
    job_destroy(s->job);
    job_shared_destroy(s->shared);
    dt_pool_destroy(s->pool);
}

const char *
replay_store_name(const struct replay_store *s, uint64_t i)
{
    static _Thread_local char text[DT_MAX_NAME + 64];
    const struct record_slice *k = &s->slices[i];
    unsigned long long start = k->start, end = k->start + k->n;

    snprintf(text, sizeof(text), "%s[%llu..%llu)", s->names[k->variable], start, end);
    return text;
}
