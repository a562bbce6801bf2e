/*
 * stepwise.c - dtw_step_begin, dtw_step_gradient, dtw_wait_variable: what is computed first is sent while the rest is
 * being computed, and what has come is used while the rest is coming. The handle counts one answer more than it has
 * messages until the last gradient came. Any thread.
 */
#include "worker/lib/stepwise.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/finite.h"
#include "worker/lib/data.h"

void
stepwise_destroy(struct stepwise *s)
{
    if (!s)
        return;
    free((void *)s->values);
    free(s->given);
    free(s->n_unanswered);
    free(s);
}

bool
stepwise_is_open(const struct dtw_handle *h)
{
    return h->stepwise && h->stepwise->n_left > 0;
}

static struct stepwise *
create(const struct dtw_client *client, const struct data_request *r)
{
    struct stepwise *s = calloc(1, sizeof(*s));
    uint32_t n = client->declared.n_wholes;

    if (!s)
        return NULL;
    s->counter = r->counter;
    s->weight = r->weight;
    s->clock = r->clock;
    s->count = r->count;
    s->n_left = n;
    s->values = calloc(n, sizeof(*s->values));
    s->given = calloc(n, sizeof(*s->given));
    s->n_unanswered = calloc(n, sizeof(*s->n_unanswered));
    if (!s->values || !s->given || !s->n_unanswered) {
        stepwise_destroy(s);
        return NULL;
    }
    memcpy((void *)s->values, (const void *)r->values, n * sizeof(*s->values));
    return s;
}

/* Two open steps would mix their gradients. */
static bool
has_open(const struct dtw_client *client)
{
    const struct dtw_handle *h;

    DL_FOREACH(client->handles, h)
    {
        if (!h->finished && stepwise_is_open(h))
            return true;
    }
    return false;
}

/* Lock held. */
static enum dtw_status
begin(struct dtw_client *client, struct data_request *r, struct dtw_handle **handle,
      struct dtw_error *err)
{
    enum dtw_status status = client_check_usable(client, err);
    struct dtw_handle *h;

    if (status == DTW_OK && has_open(client))
        status = client_error(err, DTW_INVALID, "a step is open already: give its gradients first");
    if (status == DTW_OK)
        status = data_number_push(client, r, err);
    if (status != DTW_OK)
        return status;
    h = handle_create(client);
    if (h)
        h->stepwise = create(client, r);
    if (!h || !h->stepwise) {
        handle_destroy(h);
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    }
    h->is_push = h->is_pull = true;
    h->n_unanswered = 1;
    handle_submit(h, true);
    *handle = h;
    return DTW_OK;
}

enum dtw_status
dtw_step_begin(struct dtw_client *client, float *const *values, uint64_t weight, unsigned count,
               struct dtw_handle **handle, struct dtw_error *err)
{
    struct data_request r = {
        .op = DT_OP_PUSHPULL, .values = values, .weight = weight, .count = count};
    enum dtw_status status;

    if (!handle)
        return client_error(err, DTW_INVALID, "handle: a place to put it is needed");
    *handle = NULL;
    status = data_check_initialised(client, err);
    if (status == DTW_OK)
        status = data_check_values(client, values, err);
    if (status == DTW_OK && weight == 0)
        status = client_error(err, DTW_INVALID, "weight: without rows use dtw_step to abstain");
    if (status == DTW_OK)
        status = client_enter(client, err);
    if (status != DTW_OK)
        return status;
    status = begin(client, &r, handle, err);
    client_exit(client);
    return status;
}

/* Lock held. */
static enum dtw_status
give(struct dtw_handle *h, uint32_t index, const float *gradient, struct dtw_error *err)
{
    struct stepwise *s = h->stepwise;

    if (h->finished) /* dtw_wait says how */
        return client_error(err, h->status, "%s", h->text);
    if (s->given[index])
        return client_error(err, DTW_INVALID, "variable %s: its gradient was given already",
                            h->client->declared.wholes[index].name);
    s->given[index] = true;
    s->n_left--;
    if (!data_add_variable(h, index, gradient)) {
        handle_finish(h, DTW_NO_MEMORY, DT_E_NO_MEMORY, NULL);
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    }
    handle_add_sent(h);
    if (s->n_left == 0)
        handle_answered(h, dt_now_ms());
    return DTW_OK;
}

enum dtw_status
dtw_step_gradient(struct dtw_handle *handle, unsigned index, const float *gradient,
                  struct dtw_error *err)
{
    struct dtw_client *client = handle ? handle->client : NULL;
    const struct whole *w;
    enum dtw_status status;

    if (!handle || !handle->stepwise)
        return client_error(err, DTW_INVALID, "no handle of dtw_step_begin");
    if (index >= client->declared.n_wholes || !gradient)
        return client_error(err, DTW_INVALID, "gradient: no such variable, or no buffer");
    w = &client->declared.wholes[index];
    if (!dt_is_finite(gradient, w->elements))
        return client_error(err, DTW_NOT_FINITE, "variable %s: NaN or Inf in the gradient",
                            w->name);
    status = client_enter_forked_only(client, err);
    if (status != DTW_OK)
        return status;
    status = give(handle, index, gradient, err);
    client_exit(client);
    return status;
}

void
stepwise_answered(struct dtw_handle *h, uint32_t whole)
{
    struct stepwise *s = h->stepwise;

    if (!s || whole >= h->client->declared.n_wholes)
        return;
    s->n_unanswered[whole]--;
    if (s->n_waiting > 0 && s->n_unanswered[whole] == 0)
        driver_news(&h->client->driver);
}

struct awaited {
    const struct dtw_handle *handle;
    uint32_t whole;
};

static bool
has_come(const struct dtw_client *client, const void *arg)
{
    const struct awaited *a = arg;
    const struct stepwise *s = a->handle->stepwise;

    (void)client;
    return a->handle->finished || (s->given[a->whole] && s->n_unanswered[a->whole] == 0);
}

/* Lock held. */
static enum dtw_status
wait_variable(struct dtw_handle *h, uint32_t index, int64_t deadline_ms, struct dtw_error *err)
{
    struct awaited a = {h, index};
    enum wait_end end;

    h->stepwise->n_waiting++;
    end = driver_wait(h->client, has_come, &a, deadline_ms, true);
    h->stepwise->n_waiting--;
    if (end == WAIT_TIMEOUT)
        return client_error(err, DTW_PENDING, "not complete yet");
    if (end == WAIT_INTERRUPTED)
        return client_error(err, DTW_INTERRUPTED, "interrupted");
    return h->status == DTW_OK ? DTW_OK : client_error(err, h->status, "%s", h->text);
}

enum dtw_status
dtw_wait_variable(struct dtw_handle *handle, unsigned index, int64_t timeout_ms,
                  struct dtw_error *err)
{
    struct dtw_client *client = handle ? handle->client : NULL;
    enum dtw_status status;

    if (!handle || !handle->stepwise)
        return client_error(err, DTW_INVALID, "no handle of dtw_step_begin");
    if (index >= client->declared.n_wholes)
        return client_error(err, DTW_INVALID, "no such variable");
    status = client_enter_forked_only(client, err);
    if (status != DTW_OK)
        return status;
    if (handle->stepwise->given[index] || handle->finished)
        status = wait_variable(handle, index, dt_deadline(dt_now_ms(), timeout_ms), err);
    else
        status = client_error(err, DTW_INVALID, "variable %s: its gradient is missing",
                              client->declared.wholes[index].name);
    client_exit(client);
    return status;
}
