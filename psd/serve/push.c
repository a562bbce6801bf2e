/*
 * push.c - PUSH and PUSHPULL. The unit is the message: everything is checked before anything is
 * applied. Runs on the home shard of the slices.
 */
#include <math.h>
#include <string.h>

#include "proto/base/finite.h"
#include "psd/serve/call.h"
#include "psd/serve/parked.h"
#include "psd/serve/whole.h"
#include "psd/store/clock.h"

struct checked { /* a push that may be applied */
    struct dt_data data;
    struct slice *slices[DT_MAX_ITEMS];
    bool repeated[DT_MAX_ITEMS]; /* came before: its fate is told again */
    float largest[DT_MAX_ITEMS]; /* magnitude of each gradient */
    bool abstain;
};

static enum dt_status
check_shape(const struct call *c, const struct checked *p, const char **text)
{
    uint32_t i;

    if (p->abstain) {
        *text = "a push without payload has weight 0 and count 0";
        return p->data.weight == 0 && p->data.count == 0 ? DT_OK : DT_R_MALFORMED;
    }
    *text = "one frame of the slice's size for each item";
    if (c->req->n_frames != p->data.n_items)
        return DT_R_MALFORMED;
    for (i = 0; i < p->data.n_items; i++) {
        if (c->req->frames[i].bytes != p->slices[i]->n * sizeof(float))
            return DT_R_MALFORMED;
    }
    return DT_OK;
}

static enum dt_status
check_finite(const struct call *c, struct checked *p, const char **text)
{
    uint32_t i;

    for (i = 0; i < c->req->n_frames; i++) {
        p->largest[i] = dt_largest(c->req->frames[i].p, p->slices[i]->n);
        if (!isfinite(p->largest[i])) {
            *text = "NaN or Inf in the gradient";
            return DT_R_NOT_FINITE;
        }
    }
    return DT_OK;
}

static bool
names_twice(const struct checked *p, uint32_t i)
{
    uint32_t k;

    for (k = 0; k < i; k++) {
        if (p->slices[k] == p->slices[i])
            return true;
    }
    return false;
}

/* Finds the slices; the job's state and the message's shape. */
static enum dt_status
check(struct call *c, struct checked *p, const char **text)
{
    const struct job *job = c->session->view->job;
    enum dt_status status = dt_data_decode(&c->head, &p->data);
    uint32_t i;

    *text = "malformed push";
    if (status != DT_OK)
        return status;
    p->abstain = c->req->n_frames == 0;
    for (i = 0; i < p->data.n_items; i++) {
        p->slices[i] = call_find_slice(c, &p->data.items[i]);
        if (!p->slices[i]) {
            *text = "no such slice on this shard";
            return DT_R_NO_VARIABLE;
        }
        if (names_twice(p, i)) {
            *text = "a push names a slice once";
            return DT_R_MALFORMED;
        }
    }
    if (!whole_is_covered(job, &p->data, true)) {
        *text = WHOLE_TEXT;
        return DT_R_BAD_VALUE;
    }
    if (!job->initialised) {
        *text = "the variables have no initial values yet";
        return DT_R_NOT_INITIALISED;
    }
    if (p->data.counter == 0) {
        *text = "a push's counter starts at 1";
        return DT_R_BAD_VALUE;
    }
    status = check_shape(c, p, text);
    return status == DT_OK ? check_finite(c, p, text) : status;
}

/* A refused push is counted; too many in a row and the worker is told to stop. */
static void
refuse(struct call *c, enum dt_status status, const char *text)
{
    struct view *v = c->session->view;
    uint32_t max_bad = v->job->params.max_bad;
    struct attached *a = &v->ranks[c->session->rank];

    if (status == DT_R_NOT_FINITE) {
        job_count(v->job, JOB_NOT_FINITE, 1);
        if (++a->bad_in_row >= max_bad && max_bad) {
            reply_reject(c->out, &c->to, DT_R_TOO_MANY_BAD, "%u pushes in a row were refused: %s",
                         a->bad_in_row, text);
            return;
        }
    }
    reply_status(c->out, &c->to, status, text, view_step(v));
}

static const enum job_counter fate_counters[] = {
    [DT_FATE_APPLIED] = JOB_APPLIED, [DT_FATE_ACCUMULATED] = JOB_ACCUMULATED,
    [DT_FATE_STALE] = JOB_STALE,     [DT_FATE_DUPLICATE] = JOB_DUPLICATE,
    [DT_FATE_AHEAD] = JOB_AHEAD,     [DT_FATE_REFUSED] = JOB_REFUSED,
};

static void
count_fates(struct job *job, const struct checked *p, const struct dt_data_result *results)
{
    uint32_t i, taken = 0, dropped = 0;

    for (i = 0; i < p->data.n_items; i++) {
        if (results[i].fate == DT_FATE_NONE)
            continue;
        if (p->repeated[i]) {
            job_count(job, JOB_DUPLICATE, 1);
            continue;
        }
        job_count(job, fate_counters[results[i].fate], 1);
        if (results[i].fate == DT_FATE_ACCUMULATED || results[i].fate == DT_FATE_APPLIED)
            taken++;
        else
            dropped++;
    }
    job_count(job, JOB_PUSHES, 1);
    job_count(job, JOB_PARTIAL, taken && dropped);
}

static bool
push_slice(struct call *c, struct checked *p, uint32_t i, struct dt_data_result *result)
{
    struct view *v = c->session->view;
    struct push push = {
        .rank = c->session->rank,
        .life = c->session->life,
        .counter = p->data.counter,
        .version = p->data.items[i].version,
        .weight = p->data.weight,
        .count = p->data.count,
        .gradient = p->abstain ? NULL : c->req->frames[i].p,
        .largest = p->abstain ? 0 : p->largest[i],
    };
    bool failed;

    p->repeated[i] = slice_has_push(p->slices[i], &push);
    result->fate = (uint8_t)slice_push(p->slices[i], v->job, &push, shard_running_ms(c->shard),
                                       &result->push_version, &failed);
    return !failed &&
           (!view_is_ssp(v) || clock_raise(p->slices[i], v->job, push.rank, p->data.clock));
}

/* Who waits for a slice that `moved` is answered. */
static void
wake(struct call *c, const struct checked *p, const bool *moved)
{
    struct view *v = c->session->view;
    uint32_t i;

    for (i = 0; i < p->data.n_items; i++) {
        if (moved[i])
            parked_wake(c->shard, p->slices[i], v->job, c->out);
    }
}

/* Apply to all slices and close what is due, then answer parked pulls: they see the whole message. */
static bool
apply(struct call *c, struct checked *p, struct dt_data_result *results)
{
    struct view *v = c->session->view;
    bool moved[DT_MAX_ITEMS] = {false}, good = true;
    uint32_t i;

    stages_enter(&c->shard->stages, STAGE_APPLY);
    if (v->job->params.locking == DT_LOCK_VARIABLE && !p->abstain &&
        !slice_reserve(p->slices, p->data.n_items, v->job->pool))
        return false;
    for (i = 0; i < p->data.n_items && good; i++) {
        uint64_t before = slice_version(p->slices[i]);

        good = push_slice(c, p, i, &results[i]);
        while (good && slice_close_round(p->slices[i], v->job))
            ;
        moved[i] = slice_version(p->slices[i]) != before || view_is_ssp(v);
    }
    stages_enter(&c->shard->stages, STAGE_REPLY);
    wake(c, p, moved);
    if (!good)
        return false;
    count_fates(v->job, p, results);
    job_count(v->job, JOB_PUSHED_BYTES, c->payload_bytes);
    v->ranks[c->session->rank].bad_in_row = 0;
    return true;
}

static bool
take_push(struct call *c, struct checked *p, struct dt_data_result *results)
{
    enum dt_status status;
    const char *text;

    if (!call_require_worker(c) || !call_require_open(c))
        return false;
    if (c->session->view->ranks[c->session->rank].ended) {
        reply_status(c->out, &c->to, DT_R_LEFT, "this worker has left, or was turned away", 0);
        return false;
    }
    status = check(c, p, &text);
    if (status != DT_OK) {
        refuse(c, status, text);
        return false;
    }
    memset(results, 0, DT_MAX_ITEMS * sizeof(*results));
    if (!apply(c, p, results)) {
        reply_status(c->out, &c->to, DT_R_QUOTA, "psd is short of memory", 0);
        return false;
    }
    return true;
}

void
handle_push(struct call *c)
{
    struct dt_data_reply m;
    struct checked p;
    struct reply *r;

    if (!take_push(c, &p, m.items))
        return;
    r = reply_create(&c->to);
    if (!r)
        return;
    m.n_items = p.data.n_items;
    m.approximate = view_is_racy(c->session->view);
    dt_data_reply_encode(&r->header, DT_OP_PUSH, c->to.request, c->to.session,
                         view_step(c->session->view), &m);
    outbox_add_reply(c->out, r);
}

void
handle_pushpull(struct call *c)
{
    struct dt_data_result results[DT_MAX_ITEMS];
    struct checked p;

    if (!take_push(c, &p, results))
        return;
    pull_or_park(c, &p.data, results);
}
