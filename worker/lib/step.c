/*
 * step.c - the job's global step and stop step, which live on shard 0 of ps task 0. Any thread.
 */
#include "proto/base/clock.h"
#include "worker/lib/handle.h"

/* One control message to ps task 0, waited for. */
static enum dtw_status
ask(struct dtw_client *client, enum dt_op op, uint64_t step, int64_t timeout_ms,
    struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    struct dtw_handle *h;
    struct message *m;

    if (status != DTW_OK)
        return status;
    if (op == DT_OP_WAIT_STEP && client->waits_step) {
        client_exit(client);
        return client_error(err, DTW_INVALID, "another thread waits for a step already");
    }
    h = handle_create(client);
    m = h ? message_create(client->tasks[0].shards[0], op, 0) : NULL;
    if (m) {
        m->step = step;
        handle_add(h, m);
        if (op == DT_OP_WAIT_STEP)
            client->waits_step = true;
        status = handle_run(h, NULL, dt_deadline(dt_now_ms(), timeout_ms), true, err);
        if (op == DT_OP_WAIT_STEP)
            client->waits_step = false;
    } else {
        handle_destroy(h);
        status = client_error(err, DTW_NO_MEMORY, "short of memory");
    }
    client_exit(client);
    return status;
}

/* ssp: whoever waits for the end of the others takes no more steps, and its clock is not to hold them. */
static enum dtw_status
let_all_go(struct dtw_client *client, int64_t timeout_ms, struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    struct dtw_handle *h;
    uint32_t i;

    if (status != DTW_OK)
        return status;
    h = handle_create(client);
    for (i = 0; h && i < client->n_tasks; i++) {
        struct message *m = message_create(client->tasks[i].shards[0], DT_OP_CLOCK, 0);

        if (m) {
            m->step = i == 0 ? client->n_batches : 0;
            m->clock = DT_MAX_CLOCK;
            handle_add(h, m);
            continue;
        }
        handle_destroy(h);
        h = NULL;
    }
    if (h)
        status = handle_run(h, NULL, dt_deadline(dt_now_ms(), timeout_ms), true, err);
    else
        status = client_error(err, DTW_NO_MEMORY, "short of memory");
    client_exit(client);
    return status;
}

enum dtw_status
dtw_wait_step(struct dtw_client *client, uint64_t step, int64_t timeout_ms, struct dtw_error *err)
{
    enum dtw_status status = DTW_OK;

    if (!client)
        return client_error(err, DTW_INVALID, "no client");
    if (step == UINT64_MAX && client_is_ssp(client))
        status = let_all_go(client, timeout_ms, err);
    if (status != DTW_OK)
        return status;
    return ask(client, DT_OP_WAIT_STEP, step, timeout_ms, err);
}

enum dtw_status
dtw_set_stop_step(struct dtw_client *client, uint64_t step, int64_t timeout_ms,
                  struct dtw_error *err)
{
    return ask(client, DT_OP_SET, step, timeout_ms, err);
}

uint64_t
dtw_stop_step(const struct dtw_client *client)
{
    return client ? atomic_load_explicit(&client->stop_step, memory_order_relaxed) : UINT64_MAX;
}
