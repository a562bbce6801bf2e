/*
 * member.c - JOIN and LEAVE. A step's members are the same on every ps task: JOIN is repeated to all
 * until they agree on the first step.
 */
#include "worker/lib/member.h"

#include "proto/base/clock.h"
#include "worker/lib/handle.h"

#define JOIN_TRIES 64
#define LEAVE_TRIES 3

static struct dtw_handle *
create_request(struct dtw_client *client, enum dt_op op, uint64_t step, uint32_t first, uint32_t n)
{
    struct dtw_handle *h = handle_create(client);
    uint32_t i;

    for (i = first; h && i < first + n; i++) {
        struct message *m = message_create(client->tasks[i].shards[0], op, 0);

        if (m) {
            m->step = step;
            handle_add(h, m);
            continue;
        }
        handle_destroy(h);
        h = NULL;
    }
    return h;
}

/* JOIN(want) to ps tasks [first, first + n); *want is then the highest step that was answered. */
static enum dtw_status
join_tasks(struct dtw_client *client, uint32_t first, uint32_t n, uint64_t *want,
           struct dtw_error *err)
{
    struct dtw_handle *h = create_request(client, DT_OP_JOIN, *want, first, n);
    enum dtw_status status;
    uint32_t i;

    if (!h)
        return client_error(err, DTW_NO_MEMORY, "short of memory");
    status = handle_run(h, &h, DT_FOREVER, true, err);
    if (!h)
        return status;
    for (i = first; i < first + n; i++) {
        if (h->control[i].value > *want)
            *want = h->control[i].value;
    }
    handle_destroy(h);
    return status;
}

static enum dtw_status
join_all(struct dtw_client *client, uint64_t *want, struct dtw_error *err)
{
    enum dtw_status status = join_tasks(client, 0, 1, want, err);
    uint64_t asked;
    int tries;

    if (client->n_tasks == 1)
        return status;
    for (tries = 0; status == DTW_OK && tries < JOIN_TRIES; tries++) {
        asked = *want;
        status = join_tasks(client, 0, client->n_tasks, want, err);
        if (status == DTW_OK && *want == asked)
            return DTW_OK;
    }
    return status == DTW_OK
               ? client_error(err, DTW_REFUSED, "the ps tasks do not agree on a first step")
               : status;
}

enum dtw_status
member_join(struct dtw_client *client, uint64_t *first_step, struct dtw_error *err)
{
    enum dtw_status status = DTW_OK;
    bool must = false;
    uint32_t i;

    *first_step = 0;
    for (i = 0; i < client->n_tasks; i++) {
        must = must || client->tasks[i].must_join;
        if (client->tasks[i].first_step > *first_step)
            *first_step = client->tasks[i].first_step;
    }
    if (must) {
        *first_step = 0;
        status = join_all(client, first_step, err);
    }
    for (i = 0; i < client->n_tasks && status == DTW_OK && must; i++) {
        client->tasks[i].must_join = false;
        client->tasks[i].first_step = *first_step;
    }
    client->clock = *first_step;
    return status;
}

static enum dtw_status
join_once(struct dtw_client *client, uint64_t *first_step, struct dtw_error *err)
{
    enum dtw_status status = client_wait_ready(client, err);
    bool declare = false;
    uint32_t i;

    client->lost = false;
    for (i = 0; i < client->n_tasks; i++)
        declare = declare || client->tasks[i].declared_incarnation != client->tasks[i].incarnation;
    if (status == DTW_OK && declare)
        status = declare_send(client, err);
    if (status == DTW_OK)
        status = member_join(client, first_step, err);
    return status;
}

enum dtw_status
dtw_join(struct dtw_client *client, uint64_t *first_step, struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    uint64_t first = 0;

    if (status != DTW_OK)
        return status;
    if (!client->declared.closed) {
        client_exit(client);
        return client_error(err, DTW_INVALID, "call dtw_init first");
    }
    do
        status = join_once(client, &first, err);
    while (status == DTW_LOST);
    client_exit(client);
    if (status == DTW_OK && first_step)
        *first_step = first;
    return status;
}

/* A new life that came in between has to leave as well. */
static enum dtw_status
leave_until(struct dtw_client *client, int64_t deadline, struct dtw_error *err)
{
    enum dtw_status status = DTW_UNAVAILABLE;
    uint64_t step = client->last_pushed;
    int tries;

    for (tries = 0; tries < LEAVE_TRIES; tries++) {
        struct dtw_handle *h = create_request(client, DT_OP_LEAVE, step, 0, client->n_tasks);

        if (!h)
            return client_error(err, DTW_NO_MEMORY, "short of memory");
        status = handle_run(h, NULL, deadline, false, err);
        if (status != DTW_LOST)
            break;
        step = DT_NO_VERSION;
    }
    return status;
}

static bool
is_silence(enum dtw_status status)
{
    return status == DTW_UNAVAILABLE || status == DTW_GOING_DOWN || status == DTW_NO_JOB ||
           status == DTW_LOST;
}

static bool
can_ask(const struct dtw_client *client)
{
    uint32_t i;

    for (i = 0; i < client->n_tasks; i++) {
        if (client->tasks[i].shards[0]->state == CONNECTION_DEAD)
            return false;
    }
    return true;
}

enum dtw_status
dtw_leave(struct dtw_client *client, int64_t timeout_ms, struct dtw_error *err)
{
    enum dtw_status status = client_enter_forked_only(client, err);
    struct dtw_error why = {DTW_OK, ""};

    if (status != DTW_OK)
        return status;
    if (client->left || !can_ask(client)) {
        if (!client->left && client->fatal.code != DTW_OK)
            status = client_error(err, client->fatal.code, "%s", client->fatal.text);
        client->left = true;
        client_exit(client);
        return status;
    }
    handle_finish_all(client, DTW_CANCELLED, "the worker leaves");
    status = client_check_answers(client, &why);
    if (status == DTW_OK)
        status = leave_until(client, dt_deadline(dt_now_ms(), timeout_ms), &why);
    if (is_silence(status) && !client->unacked) {
        client_log(client, DTW_LOG_WARNING,
                   "psd did not acknowledge that rank %u leaves (%s); all its pushes were",
                   client->rank, why.text);
        status = DTW_OK;
    }
    client->left = true;
    client_exit(client);
    return status == DTW_OK ? DTW_OK : client_error(err, status, "%s", why.text);
}
