/*
 * stats.c - dtw_stats: a counter of the job, summed over the ps tasks. Any thread.
 */
#include <string.h>

#include "proto/base/clock.h"
#include "worker/lib/handle.h"

static struct dtw_handle *
create_request(struct dtw_client *client)
{
    struct dtw_handle *h = handle_create(client);
    uint32_t i;

    for (i = 0; h && i < client->n_tasks; i++) {
        struct message *m = message_create(client->tasks[i].shards[0], DT_OP_STATS, 0);

        if (m) {
            handle_add(h, m);
            continue;
        }
        handle_destroy(h);
        h = NULL;
    }
    return h;
}

static bool
read_counter(const struct dt_buffer *body, const char *name, uint64_t *value, bool *found)
{
    struct dt_reader r;
    uint32_t i, n;

    dt_reader_init(&r, body->data, body->len);
    n = dt_read_map(&r, 4096);
    for (i = 0; i < n && !r.failed; i++) {
        struct dt_bytes key = dt_read_str(&r, DT_MAX_NAME);

        if (!r.failed && key.len == strlen(name) && !memcmp(key.p, name, key.len)) {
            *value += dt_read_u64(&r);
            *found = true;
        } else {
            dt_read_skip(&r);
        }
    }
    return !r.failed;
}

static enum dtw_status
sum(const struct dtw_client *client, const struct dtw_handle *h, const char *name, uint64_t *value,
    struct dtw_error *err)
{
    bool found = false;
    uint32_t i;

    *value = 0;
    for (i = 0; i < client->n_tasks; i++) {
        if (!read_counter(&h->control[i].body, name, value, &found))
            return client_error(err, DTW_PROTOCOL, "ps task %u at %s: an illegal reply to STATS", i,
                                client->tasks[i].endpoint);
    }
    return found ? DTW_OK : client_error(err, DTW_INVALID, "psd has no counter %s", name);
}

enum dtw_status
dtw_stats(struct dtw_client *client, const char *name, int64_t timeout_ms, uint64_t *value,
          struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    struct dtw_handle *h;

    if (status != DTW_OK)
        return status;
    h = name && value ? create_request(client) : NULL;
    if (!h) {
        client_exit(client);
        return name && value ? client_error(err, DTW_NO_MEMORY, "short of memory")
                             : client_error(err, DTW_INVALID, "a name and a place are needed");
    }
    status = handle_run(h, &h, dt_deadline(dt_now_ms(), timeout_ms), true, err);
    if (h) {
        if (status == DTW_OK)
            status = sum(client, h, name, value, err);
        handle_destroy(h);
    }
    client_exit(client);
    return status;
}
