/*
 * check.c - may a push or pull start, and with what number? Any thread.
 */
#include "worker/lib/data.h"

enum dtw_status
data_check_buffers(const struct dtw_client *client, const void *const *buffers, const char *what,
                   struct dtw_error *err)
{
    uint32_t i;

    for (i = 0; i < client->declared.n_wholes; i++) {
        if (!buffers[i])
            return client_error(err, DTW_INVALID, "%s: no buffer for variable %s", what,
                                client->declared.wholes[i].name);
    }
    return DTW_OK;
}

enum dtw_status
data_check_values(const struct dtw_client *client, float *const *values, struct dtw_error *err)
{
    if (!values)
        return client_error(err, DTW_INVALID, "values: no buffers");
    return data_check_buffers(client, (const void *const *)values, "values", err);
}

static uint64_t
held_step(const struct dtw_client *client, bool *complete)
{
    uint64_t step = 0;
    uint32_t i, k;

    *complete = true;
    for (i = 0; i < client->declared.n; i++) {
        for (k = 0; k < client->declared.items[i].n_slices; k++) {
            uint64_t v =
                atomic_load_explicit(&client->declared.items[i].versions[k], memory_order_relaxed);

            if (v == DT_NO_VERSION)
                *complete = false;
            else if (v > step)
                step = v;
        }
    }
    return step;
}

enum dtw_status
data_number_push(struct dtw_client *client, struct data_request *r, struct dtw_error *err)
{
    bool complete;
    uint64_t step = held_step(client, &complete);

    if (!complete)
        return client_error(err, DTW_INVALID, "pull all variables before the first push");
    r->counter = ++client->push_counter;
    if (client_is_ssp(client))
        r->clock = ++client->clock;
    declare_forget_made(&client->declared);
    if (client->last_pushed == DT_NO_VERSION || step > client->last_pushed)
        client->last_pushed = step;
    return DTW_OK;
}

enum dtw_status
data_check_initialised(struct dtw_client *client, struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    bool initialised;

    if (status != DTW_OK)
        return status;
    initialised = client->declared.closed;
    client_exit(client);
    return initialised ? DTW_OK : client_error(err, DTW_INVALID, "call dtw_init first");
}
