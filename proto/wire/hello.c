/*
 * hello.c - HELLO and its reply.
 *
 * Invariants of a decoded request: a rank below DT_MAX_RANKS or DT_NO_RANK, a legal job name, texts
 * without control characters. Of a decoded reply: at least one shard, shard < n_shards, n_shards
 * peers, a window of at least one request and one byte, a lease. Any thread.
 */
#include "proto/wire/hello.h"

#include <string.h>

#include "proto/wire/tuple.h"

#define FEATURE_BYTES 24

static void
write_features(struct dt_buffer *b, uint32_t n, char (*features)[FEATURE_BYTES])
{
    uint32_t i;

    dt_write_array(b, n);
    for (i = 0; i < n; i++)
        dt_write_str(b, features[i]);
}

static uint32_t
read_features(struct dt_head *head, char (*features)[FEATURE_BYTES])
{
    uint32_t i, n = 0;

    if (dt_head_next(head))
        n = dt_read_array(&head->fields, DT_MAX_FEATURES);
    for (i = 0; i < n; i++)
        dt_read_text(&head->fields, features[i], FEATURE_BYTES);
    return n;
}

static void
head_text(struct dt_head *head, char *out, size_t out_bytes)
{
    out[0] = '\0';
    if (dt_head_next(head))
        dt_read_text(&head->fields, out, out_bytes);
}

void
dt_hello_encode(struct dt_buffer *b, uint64_t request, const struct dt_hello *m)
{
    dt_head_request(b, DT_OP_HELLO, request, 0, 11);
    dt_write_bin(b, m->uuid, sizeof(m->uuid));
    dt_write_u64(b, m->rank);
    dt_write_u64(b, m->task);
    dt_write_str(b, m->job);
    dt_write_bool(b, m->fresh);
    dt_write_u64(b, m->incarnation);
    dt_write_u64(b, m->life);
    dt_write_str(b, m->endpoint);
    dt_write_str(b, m->host);
    dt_write_u64(b, m->pid);
    write_features(b, m->n_features, (char(*)[FEATURE_BYTES])m->features);
}

enum dt_status
dt_hello_decode(struct dt_head *head, struct dt_hello *m)
{
    memset(m, 0, sizeof(*m));
    if (head->n_left < 4) /* uuid, rank, task and job have no default */
        return DT_R_MALFORMED;
    head->n_left--;
    dt_read_exact_bin(&head->fields, m->uuid, sizeof(m->uuid));
    m->rank = (uint32_t)dt_head_u64(head, UINT32_MAX, DT_NO_RANK);
    m->task = (uint32_t)dt_head_u64(head, UINT32_MAX, 0);
    head_text(head, m->job, sizeof(m->job));
    m->fresh = dt_head_bool(head, false);
    m->incarnation = dt_head_u64(head, UINT64_MAX, 0);
    m->life = dt_head_u64(head, UINT64_MAX, 0);
    head_text(head, m->endpoint, sizeof(m->endpoint));
    head_text(head, m->host, sizeof(m->host));
    m->pid = dt_head_u64(head, UINT64_MAX, 0);
    m->n_features = read_features(head, m->features);
    if (head->fields.failed)
        return DT_R_MALFORMED;
    if ((m->rank >= DT_MAX_RANKS && m->rank != DT_NO_RANK) || m->task >= DT_MAX_TASKS ||
        !dt_is_name(m->job))
        return DT_R_BAD_VALUE;
    return DT_OK;
}

void
dt_hello_reply_encode(struct dt_buffer *b, uint64_t request, uint64_t session, uint64_t step,
                      const struct dt_hello_reply *m)
{
    uint32_t i;

    dt_head_reply(b, DT_OP_HELLO, request, session, DT_OK, "", step, 13);
    dt_write_u64(b, m->incarnation);
    dt_write_u64(b, m->life);
    dt_write_u64(b, m->shard);
    dt_write_u64(b, m->n_shards);
    dt_write_array(b, m->n_shards);
    for (i = 0; i < m->n_shards; i++)
        dt_write_str(b, m->peers[i]);
    dt_write_u64(b, m->job_id);
    dt_write_bool(b, m->must_join);
    dt_write_u64(b, m->first_step);
    dt_write_bool(b, m->initialised);
    dt_write_u64(b, m->window);
    dt_write_u64(b, m->window_bytes);
    dt_write_i64(b, m->lease_ms);
    write_features(b, m->n_features, (char(*)[FEATURE_BYTES])m->features);
}

static void
read_peers(struct dt_head *head, struct dt_hello_reply *m)
{
    struct dt_reader *r = &head->fields;
    uint32_t i, n = dt_head_next(head) ? dt_read_array(r, DT_MAX_SHARDS) : 0;

    if (n != m->n_shards)
        r->failed = true;
    for (i = 0; i < n && !r->failed; i++)
        dt_read_text(r, m->peers[i], sizeof(m->peers[i]));
}

enum dt_status
dt_hello_reply_decode(struct dt_head *head, struct dt_hello_reply *m)
{
    memset(m, 0, sizeof(*m));
    m->incarnation = dt_head_u64(head, UINT64_MAX, 0);
    m->life = dt_head_u64(head, UINT64_MAX, 0);
    m->shard = (uint32_t)dt_head_u64(head, DT_MAX_SHARDS - 1, 0);
    m->n_shards = (uint32_t)dt_head_u64(head, DT_MAX_SHARDS, 0);
    read_peers(head, m);
    m->job_id = dt_head_u64(head, UINT64_MAX, 0);
    m->must_join = dt_head_bool(head, false);
    m->first_step = dt_head_u64(head, UINT64_MAX, 0);
    m->initialised = dt_head_bool(head, false);
    m->window = (uint32_t)dt_head_u64(head, UINT32_MAX, 1);
    m->window_bytes = dt_head_u64(head, UINT64_MAX, DT_MAX_FRAME_BYTES);
    m->lease_ms = (int64_t)dt_head_u64(head, INT64_MAX, 10000);
    m->n_features = read_features(head, m->features);
    if (head->fields.failed || m->n_shards == 0)
        return DT_R_MALFORMED;
    if (m->shard >= m->n_shards || m->window == 0 || m->window_bytes == 0 || m->lease_ms == 0)
        return DT_R_BAD_VALUE;
    return DT_OK;
}
