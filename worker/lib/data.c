/*
 * data.c - splits a request over all variables into messages: at most 64 slices and message_bytes of
 * payload each, all of one home shard, in order. Lock held.
 */
#include "worker/lib/data.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct split { /* the messages that are being filled: one a shard of each ps task */
    struct dtw_client *client;
    struct dtw_handle *handle;
    const struct data_request *request;
    uint32_t task;
    struct message *open[DT_MAX_SHARDS]; /* of the ps task at hand */
};

static bool
fits(const struct split *s, const struct message *m, uint64_t bytes)
{
    return m->n_items < DT_MAX_ITEMS &&
           m->out_bytes + m->in_bytes + bytes <= s->client->message_bytes;
}

/* Locking variable: a message is whole variables, however large. */
static bool
moves_whole(const struct dtw_client *client)
{
    return client->params.locking == DT_LOCK_VARIABLE;
}

static struct message *
open_message(struct split *s, uint32_t task, uint32_t shard)
{
    const struct data_request *r = s->request;
    struct message *m = message_create(s->client->tasks[task].shards[shard], r->op, DT_MAX_ITEMS);

    if (!m)
        return NULL;
    m->counter = r->counter;
    m->weight = r->weight;
    m->clock = r->clock;
    m->count = r->count;
    handle_add(s->handle, m);
    s->open[shard] = m;
    return m;
}

/* A version; in ssp this worker's clock. */
static uint64_t
wanted(const struct split *s, uint64_t held)
{
    const struct data_request *r = s->request;

    if (client_is_ssp(s->client))
        return r->op == DT_OP_PULL ? s->client->clock : r->clock;
    if (r->op == DT_OP_PULL)
        return r->want;
    return client_is_sync(s->client) ? held + 1 : 0;
}

static bool
add_slice(struct split *s, uint32_t index, uint32_t slice)
{
    const struct data_request *r = s->request;
    struct variable *v = &s->client->declared.items[index];
    uint32_t n = dt_slice_elements(v->elements, slice);
    uint64_t start = v->start + (uint64_t)slice * DT_SLICE_ELEMENTS, bytes = n * sizeof(float);
    uint64_t held = atomic_load_explicit(&v->versions[slice], memory_order_relaxed);
    struct message *m = s->open[v->homes[slice]];
    struct message_item *it;

    if (!m || m->n_items == DT_MAX_ITEMS ||
        (!moves_whole(s->client) &&
         !fits(s, m, (r->gradients ? bytes : 0) + (r->values ? bytes : 0))))
        m = open_message(s, v->decl.task, v->homes[slice]);
    if (!m)
        return false;
    it = &m->items[m->n_items++];
    it->variable = v->id;
    it->slice = slice;
    it->n = n;
    it->version = r->op == DT_OP_PULL ? DT_NO_VERSION : held;
    it->want = wanted(s, held);
    it->out = r->gradients ? r->gradients[v->whole] + start : NULL;
    it->in = r->values ? r->values[v->whole] + start : NULL;
    it->version_held = &v->versions[slice];
    it->version_made = &v->made[slice];
    m->out_bytes += it->out ? bytes : 0;
    m->in_bytes += it->in ? bytes : 0;
    s->handle->result.n_slices++;
    return true;
}

static void
turn_to(struct split *s, uint32_t task)
{
    s->task = task;
    memset(s->open, 0, sizeof(s->open));
}

/* Room for the whole variable in its shard's message, or a new one. */
static bool
make_room(struct split *s, const struct variable *v)
{
    const struct data_request *r = s->request;
    const struct message *m = s->open[v->homes[0]];
    uint64_t bytes = v->elements * sizeof(float);

    bytes = (r->gradients ? bytes : 0) + (r->values ? bytes : 0);
    if (m && m->n_items + v->n_slices <= DT_MAX_ITEMS && fits(s, m, bytes))
        return true;
    return open_message(s, v->decl.task, v->homes[0]) != NULL;
}

static bool
add_variable(struct split *s, uint32_t index)
{
    const struct variable *v = &s->client->declared.items[index];
    uint32_t k;

    if (v->decl.task != s->task)
        turn_to(s, v->decl.task);
    if (moves_whole(s->client) && !make_room(s, v))
        return false;
    for (k = 0; k < v->n_slices; k++) {
        if (!add_slice(s, index, k))
            return false;
    }
    return true;
}

static bool
add_task(struct split *s, uint32_t task)
{
    const struct declared *d = &s->client->declared;
    uint32_t i;

    turn_to(s, task);
    for (i = 0; i < d->n; i++) {
        if (d->items[i].decl.task == task && !add_variable(s, i))
            return false;
    }
    return true;
}

static bool
has_variable(const struct dtw_client *client, uint32_t task)
{
    uint32_t i;

    for (i = 0; i < client->declared.n; i++) {
        if (client->declared.items[i].decl.task == task)
            return true;
    }
    return false;
}

/* The job's global step lives on ps task 0: in an asynchronous job each push tells it the batches that
 * this worker has pushed so far, in a synchronous one the step where it holds no slice of its own. */
static bool
add_clock(struct split *s)
{
    struct dtw_client *client = s->client;
    struct message *m;

    if (client_is_sync(client) && has_variable(client, 0))
        return true;
    m = message_create(client->tasks[0].shards[0], DT_OP_CLOCK, 0);
    if (!m)
        return false;
    m->whole = UINT32_MAX; /* it comes last */
    client->n_batches += s->request->count;
    m->step = client_is_sync(client) ? client->last_pushed + 1 : client->n_batches;
    handle_add(s->handle, m);
    return true;
}

struct dtw_handle *
data_request(struct dtw_client *client, const struct data_request *r)
{
    struct split s = {.client = client, .handle = handle_create(client), .request = r};
    uint32_t t;

    if (!s.handle)
        return NULL;
    s.handle->is_push = r->op != DT_OP_PULL;
    s.handle->is_pull = r->values != NULL;
    for (t = 0; t < client->n_tasks; t++) {
        if (add_task(&s, t))
            continue;
        handle_destroy(s.handle);
        return NULL;
    }
    if (s.handle->is_push && !add_clock(&s)) {
        handle_destroy(s.handle);
        return NULL;
    }
    return s.handle;
}

static bool
add_whole(struct split *s, uint32_t index)
{
    const struct whole *w = &s->client->declared.wholes[index];
    uint32_t k;

    for (k = 0; k < w->n_parts; k++) {
        if (!add_variable(s, w->first + k))
            return false;
    }
    return true;
}

/* All messages of the handle that are not handed over yet are those of one variable. */
static void
mark_messages(const struct dtw_handle *h, uint32_t whole)
{
    struct message *m;

    DL_FOREACH(h->messages, m)
    {
        m->whole = whole;
        h->stepwise->n_unanswered[whole]++;
    }
}

bool
data_add_variable(struct dtw_handle *h, uint32_t index, const float *gradient)
{
    const struct stepwise *step = h->stepwise;
    const float **gradients = calloc(index + 1, sizeof(*gradients));
    struct data_request r = {.op = DT_OP_PUSHPULL,
                             .gradients = gradients,
                             .values = step->values,
                             .weight = step->weight,
                             .count = step->count,
                             .clock = step->clock,
                             .counter = step->counter};
    struct split s = {.client = h->client, .handle = h, .request = &r};
    bool added = false;

    if (gradients) {
        gradients[index] = gradient;
        added = add_whole(&s, index);
        mark_messages(h, index);
        added = added && (step->n_left > 0 || add_clock(&s));
    }
    free((void *)gradients);
    return added;
}

struct dtw_handle *
data_init_request(struct dtw_client *client, uint32_t index, const float *values)
{
    uint32_t whole = client->declared.items[index].whole;
    const float **gradients = calloc(whole + 1, sizeof(*gradients));
    struct data_request r = {.op = DT_OP_INIT, .gradients = gradients};
    struct split s = {.client = client, .handle = handle_create(client), .request = &r};

    if (gradients)
        gradients[whole] = values;
    if (!s.handle || !gradients || !add_variable(&s, index)) {
        handle_destroy(s.handle);
        s.handle = NULL;
    }
    free((void *)gradients);
    return s.handle;
}
