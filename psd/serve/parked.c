/*
 * parked.c - requests that wait for versions. Runs on the shard's thread.
 */
#include "psd/serve/parked.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "psd/store/clock.h"

static size_t
entry_bytes(uint32_t n_items)
{
    return sizeof(struct parked) + n_items * sizeof(struct parked_item);
}

bool
parked_fits(const struct shard *shard, const struct session *s, uint32_t n_items)
{
    /* A resumed or impatient client may ask for a slice twice; more is no legal use. */
    uint64_t most = 2ull * s->view->job->n_slices + DT_MAX_ITEMS;

    return (uint64_t)s->n_parked_items + s->n_woken_items + n_items <= most &&
           s->parked_bytes + entry_bytes(n_items) <=
               atomic_load(&shard->shared->limits.max_session_bytes);
}

bool
parked_is_there(const struct slice *s, const struct job *job, uint32_t rank, uint64_t want)
{
    if (job->params.consistency == DT_SSP)
        return clock_allows(s, job, rank, want);
    return slice_version(s) >= want;
}

static bool
is_there(const struct parked_item *it, const struct job *job)
{
    return job->initialised && parked_is_there(it->slice, job, it->owner->session->rank, it->want);
}

static void
hang(struct parked_item *it)
{
    struct parked_item *head = it->slice->waiters;

    DL_APPEND(head, it);
    it->slice->waiters = head;
    it->waiting = true;
    it->owner->n_waiting++;
}

static void
unhang(struct parked_item *it)
{
    struct parked_item *head = it->slice->waiters;

    DL_DELETE(head, it);
    it->slice->waiters = head;
    it->waiting = false;
    it->owner->n_waiting--;
}

struct parked *
parked_create(struct shard *shard, struct session *s, unsigned op, uint64_t request,
              const struct dt_data *data, const struct dt_data_result *results)
{
    const struct job *job = s->view->job;
    struct parked *p;
    uint32_t i;

    if (!parked_fits(shard, s, data->n_items))
        return NULL;
    p = calloc(1, entry_bytes(data->n_items));
    if (!p)
        return NULL;
    p->session = s;
    p->op = op;
    p->request = request;
    p->n_items = data->n_items;
    DL_APPEND(s->parked, p);
    s->n_parked_items += p->n_items;
    s->parked_bytes += entry_bytes(p->n_items);
    for (i = 0; i < p->n_items; i++) {
        struct parked_item *it = &p->items[i];

        it->owner = p;
        it->slice = job_find_slice(job, data->items[i].variable, data->items[i].slice);
        it->have = op == DT_OP_PULL ? data->items[i].version : DT_NO_VERSION;
        it->want = data->items[i].want;
        if (results)
            it->result = results[i];
        if (!is_there(it, job))
            hang(it);
    }
    return p;
}

void
parked_destroy(struct parked *p)
{
    struct session *s = p->session;
    uint32_t i;

    for (i = 0; i < p->n_items; i++) {
        if (p->items[i].waiting)
            unhang(&p->items[i]);
    }
    DL_DELETE(s->parked, p);
    s->n_parked_items -= p->n_items;
    s->parked_bytes -= entry_bytes(p->n_items);
    free(p);
}

void
parked_refuse(struct parked *p, enum dt_status status, const char *text, struct outbox *out)
{
    struct reply_to to = session_reply_to(p->session, p->op, p->request);

    reply_status(out, &to, status, text, view_step(p->session->view));
    parked_destroy(p);
}

static bool
fill(struct parked *p, struct reply *r, struct dt_data_reply *m)
{
    uint32_t i;

    if (!reply_reserve(r, p->n_items))
        return false;
    m->n_items = p->n_items;
    m->approximate = view_is_racy(p->session->view);
    for (i = 0; i < p->n_items; i++) {
        const struct parked_item *it = &p->items[i];

        m->items[i] = it->result;
        m->items[i].version = slice_version(it->slice);
        m->items[i].modified = it->have != slice_version(it->slice);
        reply_add_block(r, m->items[i].modified ? it->slice->values : NULL);
    }
    return true;
}

void
parked_answer(struct shard *shard, struct parked *p, bool woken, struct outbox *out)
{
    struct session *s = p->session;
    struct reply_to to = session_reply_to(s, p->op, p->request);
    struct reply *r = reply_create(&to);
    struct dt_data_reply m;

    if (!r || !fill(p, r, &m)) {
        reply_destroy(r);
        parked_refuse(p, DT_R_QUOTA, "psd is short of memory", out);
        return;
    }
    dt_data_reply_encode(&r->header, (enum dt_op)p->op, to.request, to.session, view_step(s->view),
                         &m);
    job_count(s->view->job, JOB_PULLED_BYTES, r->meter_bytes);
    if (woken)
        stages_woken(&shard->stages, p->since_ns);
    parked_destroy(p);
    session_send(shard, s, r, woken, out);
}

void
parked_wake(struct shard *shard, struct slice *slice, const struct job *job, struct outbox *out)
{
    struct parked_item *it = slice->waiters, *next;

    for (; it; it = next) {
        struct parked *p = it->owner;

        next = it->next;
        if (!is_there(it, job))
            continue;
        unhang(it);
        if (p->n_waiting > 0)
            continue;
        parked_answer(shard, p, true, out); /* a woken reply never ends a session: next stays */
    }
}

const struct parked_item *
parked_first_waiting(const struct parked *p)
{
    uint32_t i;

    for (i = 0; i < p->n_items; i++) {
        if (p->items[i].waiting)
            return &p->items[i];
    }
    return NULL;
}

void
parked_waiting(const struct parked *p, struct dt_waiting *w)
{
    const struct view *view = p->session->view;
    const struct parked_item *it = parked_first_waiting(p);
    uint32_t n;

    memset(w, 0, sizeof(*w));
    if (!it)
        return;
    w->step = slice_version(it->slice);
    if (!view->job->initialised) {
        w->reason = DT_WAIT_INIT;
        if (view->grant_rank != DT_NO_RANK)
            w->ranks[w->n_ranks++] = view->grant_rank;
        return;
    }
    w->reason = view_is_ssp(view) ? DT_WAIT_CLOCK : DT_WAIT_STEP;
    if (view_is_ssp(view))
        n = clock_missing(it->slice, view->job, p->session->rank, it->want, &w->step, w->ranks,
                          DT_MAX_WAITED_RANKS);
    else
        n = slice_missing(it->slice, view->job, w->ranks, DT_MAX_WAITED_RANKS);
    w->n_ranks = n < DT_MAX_WAITED_RANKS ? n : DT_MAX_WAITED_RANKS;
}
