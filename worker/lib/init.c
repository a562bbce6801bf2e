/*
 * init.c - dtw_init: declarations, the grant to give initial values, membership. Lock held but for
 * the application's fill function.
 */
#include <stdlib.h>

#include "proto/base/clock.h"
#include "proto/base/finite.h"
#include "worker/lib/data.h"
#include "worker/lib/handle.h"
#include "worker/lib/member.h"

#define GRANT_TRIES 16 /* the grant passes on when a lease ends: ask again, but not for ever */

static enum dtw_status
send_init_done(struct dtw_client *client, const struct task *t, bool sent, uint64_t *state,
               enum dt_status *raw, struct dtw_error *err)
{
    struct dtw_handle *h = handle_create(client);
    struct message *m = h ? message_create(t->shards[0], DT_OP_INIT_DONE, 0) : NULL;
    enum dtw_status status;

    if (!m) {
        handle_destroy(h);
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    }
    m->init_done.sent = sent;
    m->init_done.n_variables = client->declared.n;
    m->init_done.fingerprint = declare_fingerprint(&client->declared);
    handle_add(h, m);
    status = handle_run(h, &h, DT_FOREVER, true, err);
    if (!h)
        return status;
    *state = h->control[t->index].value;
    *raw = h->raw;
    handle_destroy(h);
    return status;
}

static enum dtw_status
send_values(struct dtw_client *client, uint32_t index, const float *values, enum dt_status *raw,
            struct dtw_error *err)
{
    struct dtw_handle *h = data_init_request(client, index, values);
    enum dtw_status status;

    if (!h)
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    status = handle_run(h, &h, DT_FOREVER, true, err);
    if (!h)
        return status;
    *raw = h->raw;
    handle_destroy(h);
    return status;
}

/* The parts of a variable that the ps task holds, out of the values of the whole. */
static enum dtw_status
send_parts(struct dtw_client *client, const struct task *t, const struct whole *w,
           const float *values, enum dt_status *raw, struct dtw_error *err)
{
    enum dtw_status status = client_check_usable(client, err);
    uint32_t i;

    for (i = w->first; status == DTW_OK && i < w->first + w->n_parts; i++) {
        if (client->declared.items[i].decl.task == t->index)
            status = send_values(client, i, values, raw, err);
    }
    return status;
}

static enum dtw_status
give_variable(struct dtw_client *client, const struct task *t, uint32_t index, dtw_init_fn *fill,
              void *arg, enum dt_status *raw, struct dtw_error *err)
{
    const struct whole *w = &client->declared.wholes[index];
    float *values = dtw_alloc(w->elements);
    enum dtw_status status;

    if (!values)
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    client_exit(client);
    fill(arg, index, values, w->elements);
    if (dt_is_finite(values, w->elements))
        status = DTW_OK;
    else
        status = client_error(err, DTW_NOT_FINITE, "variable %s: NaN or Inf in its initial values",
                              w->name);
    pthread_mutex_lock(&client->driver.lock);
    if (status == DTW_OK)
        status = send_parts(client, t, w, values, raw, err);
    dtw_free(values, w->elements);
    return status;
}

static bool
has_part(const struct dtw_client *client, const struct task *t, const struct whole *w)
{
    uint32_t i;

    for (i = w->first; i < w->first + w->n_parts; i++) {
        if (client->declared.items[i].decl.task == t->index)
            return true;
    }
    return false;
}

static enum dtw_status
give_all(struct dtw_client *client, const struct task *t, dtw_init_fn *fill, void *arg,
         enum dt_status *raw, struct dtw_error *err)
{
    enum dtw_status status = DTW_OK;
    uint64_t state;
    uint32_t i;

    for (i = 0; i < client->declared.n_wholes && status == DTW_OK; i++) {
        if (has_part(client, t, &client->declared.wholes[i]))
            status = give_variable(client, t, i, fill, arg, raw, err);
    }
    if (status == DTW_OK)
        status = send_init_done(client, t, true, &state, raw, err);
    return status;
}

static enum dtw_status
init_task(struct dtw_client *client, const struct task *t, dtw_init_fn *fill, void *arg,
          struct dtw_error *err)
{
    enum dtw_status status = DTW_OK;
    enum dt_status raw = DT_OK;
    uint64_t state = 0;
    int tries;

    for (tries = 0; tries < GRANT_TRIES; tries++) {
        status = send_init_done(client, t, false, &state, &raw, err);
        if (status != DTW_OK || state == DT_INIT_COMPLETE)
            return status;
        if (state != DT_INIT_GRANTED)
            return client_error(err, DTW_PROTOCOL,
                                "ps task %u at %s: an illegal reply to INIT_DONE", t->index,
                                t->endpoint);
        if (!fill)
            return client_error(err, DTW_INVALID, "this worker has to give the initial values");
        status = give_all(client, t, fill, arg, &raw, err);
        if (status == DTW_OK || raw != DT_R_DENIED)
            return status;
    }
    return status;
}

static enum dtw_status
init_once(struct dtw_client *client, dtw_init_fn *fill, void *arg, uint64_t *first_step,
          struct dtw_error *err)
{
    enum dtw_status status = client_wait_ready(client, err);
    uint32_t i;

    client->lost = false;
    if (status == DTW_OK)
        status = declare_send(client, err);
    for (i = 0; i < client->n_tasks && status == DTW_OK; i++)
        status = init_task(client, &client->tasks[i], fill, arg, err);
    if (status == DTW_OK)
        status = member_join(client, first_step, err);
    return status;
}

enum dtw_status
dtw_init(struct dtw_client *client, dtw_init_fn *fill, void *arg, uint64_t *first_step,
         struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    const char *unused;
    uint64_t first = 0;

    if (status != DTW_OK)
        return status;
    if (client->declared.n == 0) {
        client_exit(client);
        return client_error(err, DTW_INVALID, "no variable is declared");
    }
    unused = placement_unused_pin(&client->declared.placement);
    if (unused) {
        client_exit(client);
        return client_error(err, DTW_INVALID, "dtw_place: no variable %s is declared", unused);
    }
    client->declared.closed = true;
    do
        status = init_once(client, fill, arg, &first, err);
    while (status == DTW_LOST); /* nothing was trained yet: simply begin again */
    client_exit(client);
    if (status == DTW_OK && first_step)
        *first_step = first;
    return status;
}
