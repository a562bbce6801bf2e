/*
 * push_pull.c - dtw_pull, dtw_push, dtw_push_pull, dtw_step, dtw_wait, dtw_cancel. Any thread.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/finite.h"
#include "worker/lib/data.h"

static enum dtw_status
check_gradients(const struct dtw_client *client, const struct data_request *r,
                struct dtw_error *err)
{
    enum dtw_status status;
    uint32_t i;

    if (!r->gradients)
        return r->weight == 0 && r->count == 0
                   ? DTW_OK
                   : client_error(err, DTW_INVALID,
                                  "a push without gradients has weight 0 and count 0");
    status = data_check_buffers(client, (const void *const *)r->gradients, "gradients", err);
    for (i = 0; status == DTW_OK && i < client->declared.n_wholes; i++) {
        const struct whole *w = &client->declared.wholes[i];

        if (!dt_is_finite(r->gradients[i], w->elements))
            status = client_error(err, DTW_NOT_FINITE, "variable %s: NaN or Inf in the gradient",
                                  w->name);
    }
    return status;
}

/* What can be checked without the lock: declarations do not change after dtw_init. */
static enum dtw_status
check_arguments(const struct dtw_client *client, const struct data_request *r,
                struct dtw_error *err)
{
    enum dtw_status status = DTW_OK;

    if (r->op != DT_OP_PULL)
        status = check_gradients(client, r, err);
    if (status != DTW_OK || r->op == DT_OP_PUSH)
        return status;
    return data_check_values(client, r->values, err);
}

/* A handle that is not submitted; NULL: *status says why not. Lock held. */
static struct dtw_handle *
create_locked(struct dtw_client *client, struct data_request *r, enum dtw_status *status,
              struct dtw_error *err)
{
    struct dtw_handle *h;

    *status = client_check_usable(client, err);
    if (*status == DTW_OK && r->op != DT_OP_PULL)
        *status = data_number_push(client, r, err);
    if (*status != DTW_OK)
        return NULL;
    h = data_request(client, r);
    if (!h)
        *status = client_error(err, DTW_NO_MEMORY, "short of memory");
    return h;
}

/* Checks, then leaves a handle that is not submitted, with the lock held. NULL: *status, no lock. */
static struct dtw_handle *
prepare(struct dtw_client *client, struct data_request *r, enum dtw_status *status,
        struct dtw_error *err)
{
    struct dtw_handle *h;

    *status = data_check_initialised(client, err);
    if (*status == DTW_OK)
        *status = check_arguments(client, r, err);
    if (*status == DTW_OK)
        *status = client_enter(client, err);
    if (*status != DTW_OK)
        return NULL;
    h = create_locked(client, r, status, err);
    if (!h)
        client_exit(client);
    return h;
}

/* Takes `copy`: it goes with the handle. */
static enum dtw_status
begin(struct dtw_client *client, struct data_request *r, float *copy, struct dtw_handle **handle,
      struct dtw_error *err)
{
    enum dtw_status status = DTW_INVALID;
    struct dtw_handle *h = NULL;

    if (handle)
        h = prepare(client, r, &status, err);
    else
        client_error(err, DTW_INVALID, "handle: a place to put it is needed");
    if (handle)
        *handle = h;
    if (!h) {
        free(copy);
        return status;
    }
    h->copy = copy;
    handle_submit(h, true);
    client_exit(client);
    return DTW_OK;
}

enum dtw_status
dtw_pull(struct dtw_client *client, float *const *values, uint64_t want_step,
         struct dtw_handle **handle, struct dtw_error *err)
{
    struct data_request r = {.op = DT_OP_PULL, .values = values, .want = want_step};

    return begin(client, &r, NULL, handle, err);
}

enum dtw_status
dtw_push(struct dtw_client *client, const float *const *gradients, uint64_t weight, unsigned count,
         struct dtw_handle **handle, struct dtw_error *err)
{
    struct data_request r = {
        .op = DT_OP_PUSH, .gradients = gradients, .weight = weight, .count = count};

    return begin(client, &r, NULL, handle, err);
}

static uint64_t
total_elements(const struct dtw_client *client)
{
    uint64_t n = 0;
    uint32_t i;

    for (i = 0; i < client->declared.n_wholes; i++)
        n += client->declared.wholes[i].elements;
    return n;
}

/* One allocation with all gradients behind each other; views[i] points into it. */
static float *
copy_gradients(const struct dtw_client *client, const float *const *gradients, const float **views)
{
    float *copy = malloc(total_elements(client) * sizeof(float)), *at = copy;
    uint32_t i;

    for (i = 0; copy && i < client->declared.n_wholes; i++) {
        memcpy(at, gradients[i], client->declared.wholes[i].elements * sizeof(float));
        views[i] = at;
        at += client->declared.wholes[i].elements;
    }
    return copy;
}

static enum dtw_status
push_copied(struct dtw_client *client, struct data_request *r, struct dtw_handle **handle,
            struct dtw_error *err)
{
    const float **views = calloc(client->declared.n_wholes, sizeof(*views));
    float *copy = views ? copy_gradients(client, r->gradients, views) : NULL;
    enum dtw_status status = DTW_NO_MEMORY;

    if (copy) {
        r->gradients = views;
        status = begin(client, r, copy, handle, err);
    } else {
        client_error(err, DTW_NO_MEMORY, "short of memory");
    }
    free((void *)views);
    return status;
}

enum dtw_status
dtw_push_copy(struct dtw_client *client, const float *const *gradients, uint64_t weight,
              unsigned count, struct dtw_handle **handle, struct dtw_error *err)
{
    struct data_request r = {
        .op = DT_OP_PUSH, .gradients = gradients, .weight = weight, .count = count};
    enum dtw_status status = client_enter(client, err);

    if (status != DTW_OK)
        return status;
    client_exit(client);
    if (!gradients || client->declared.n_wholes == 0)
        return begin(client, &r, NULL, handle, err);
    status = data_check_buffers(client, (const void *const *)gradients, "gradients", err);
    return status == DTW_OK ? push_copied(client, &r, handle, err) : status;
}

enum dtw_status
dtw_push_pull(struct dtw_client *client, const float *const *gradients, float *const *values,
              uint64_t weight, unsigned count, struct dtw_handle **handle, struct dtw_error *err)
{
    struct data_request r = {.op = DT_OP_PUSHPULL,
                             .gradients = gradients,
                             .values = values,
                             .weight = weight,
                             .count = count};

    return begin(client, &r, NULL, handle, err);
}

enum dtw_status
dtw_step(struct dtw_client *client, const float *const *gradients, float *const *values,
         uint64_t weight, unsigned count, struct dtw_result *result, struct dtw_error *err)
{
    struct data_request r = {.op = DT_OP_PUSHPULL,
                             .gradients = gradients,
                             .values = values,
                             .weight = weight,
                             .count = count};
    enum dtw_status status;
    struct dtw_handle *h = prepare(client, &r, &status, err);

    if (!h)
        return status;
    status = handle_run(h, &h, DT_FOREVER, true, err);
    if (h) {
        if (result)
            *result = h->result;
        handle_destroy(h);
    }
    client_exit(client);
    return status;
}

enum dtw_status
dtw_wait(struct dtw_handle *handle, int64_t timeout_ms, struct dtw_result *result,
         struct dtw_error *err)
{
    struct dtw_client *client = handle ? handle->client : NULL;
    enum dtw_status status;
    enum wait_end end;

    if (!handle)
        return client_error(err, DTW_INVALID, "no handle");
    status = client_enter_forked_only(client, err);
    if (status != DTW_OK)
        return status;
    if (stepwise_is_open(handle) && !handle->finished) {
        client_exit(client);
        return client_error(err, DTW_INVALID, "gradients are missing: dtw_step_gradient");
    }
    end = handle_wait(handle, dt_deadline(dt_now_ms(), timeout_ms), true);
    if (end == WAIT_OVER) {
        status = handle_collect(handle, result, err);
    } else if (end == WAIT_TIMEOUT) {
        status = client_error(err, DTW_PENDING, "not complete yet");
    } else {
        handle_cancel(handle);
        status = client_error(err, DTW_INTERRUPTED, "interrupted");
    }
    client_exit(client);
    return status;
}

void
dtw_cancel(struct dtw_handle *handle)
{
    struct dtw_client *client = handle ? handle->client : NULL;

    if (!handle || client_enter_forked_only(client, NULL) != DTW_OK)
        return;
    handle_cancel(handle);
    client_exit(client);
}
