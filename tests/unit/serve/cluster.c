/*
 * cluster.c - the test's transport: lists instead of sockets.
 */
#include "cluster.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cluster *
cluster_create_with(const struct serve_config *config)
{
    struct cluster *c = calloc(1, sizeof(*c));
    uint32_t i, k;

    c->config = *config;
    c->n_shards = config->n_shards;
    c->shared = serve_shared_create(&c->config);
    c->now = 1000;
    for (i = 0; i < c->n_shards; i++) {
        c->shards[i] = shard_create(c->shared, i, -1);
        cr_assert_not_null(c->shards[i]);
        for (k = 0; k < 8; k++)
            c->mails_end[i][k] = &c->mails[i][k];
    }
    cluster_tick(c, 0);
    return c;
}

struct serve_config
cluster_config(uint32_t n_shards)
{
    return (struct serve_config){
        .n_shards = n_shards,
        .window = 8,
        .window_bytes = 64u << 20,
        .max_session_bytes = 1u << 20,
        .memory_quota = 1u << 30,
        .once_suspend_ms = 60000,
    };
}

struct cluster *
cluster_create(uint32_t n_shards)
{
    struct serve_config config = cluster_config(n_shards);

    return cluster_create_with(&config);
}

void
answer_free(struct answer *a)
{
    uint32_t i;

    if (!a)
        return;
    for (i = 0; i < a->n_frames; i++)
        free(a->frames[i]);
    dt_buffer_deinit(&a->header);
    dt_buffer_deinit(&a->body);
    free(a);
}

void
cluster_destroy(struct cluster *c)
{
    uint32_t i, k;

    for (i = 0; i < 8; i++) {
        for (k = 0; k < 8; k++) {
            while (c->mails[i][k]) {
                struct mail *m = c->mails[i][k];

                c->mails[i][k] = *mail_next(m);
                mail_destroy(m);
            }
        }
    }
    for (i = c->n_shards; i-- > 0;)
        shard_destroy(c->shards[i]);
    serve_shared_destroy(c->shared);
    for (i = 0; i < c->n_answers; i++)
        answer_free(c->answers[i]);
    free(c);
}

static void
keep_answer(struct cluster *c, uint32_t shard, struct reply *r)
{
    struct answer *a = calloc(1, sizeof(*a));
    uint32_t i;

    a->shard = shard;
    a->route = r->route;
    cr_assert(!r->header.failed);
    cr_assert(dt_buffer_append(&a->header, r->header.data, r->header.len));
    if (r->body.len)
        dt_buffer_append(&a->body, r->body.data, r->body.len);
    a->n_frames = r->n_payload;
    for (i = 0; i < r->n_payload; i++) {
        a->frame_bytes[i] = r->payload[i].bytes;
        a->frames[i] = malloc(r->payload[i].bytes + 1);
        if (r->payload[i].bytes)
            memcpy(a->frames[i], r->payload[i].block->data, r->payload[i].bytes);
    }
    cr_assert_eq(dt_head_decode(&a->head, a->header.data, a->header.len), DT_OK);
    cr_assert_lt(c->n_answers, MAX_ANSWERS);
    c->answers[c->n_answers++] = a;
    if (r->meter)
        dt_meter_release(r->meter, r->meter_bytes);
    reply_destroy(r);
}

void
cluster_keep(struct cluster *c, struct reply *r)
{
    keep_answer(c, 0, r);
}

static void
collect(struct cluster *c, uint32_t shard, struct outbox *out)
{
    struct reply *r;
    struct mail *m;

    while ((r = outbox_take_reply(out)) != NULL) {
        if (c->hold_replies && c->n_held < sizeof(c->held) / sizeof(c->held[0]))
            c->held[c->n_held++] = r;
        else
            keep_answer(c, shard, r);
    }
    while ((m = outbox_take_mail(out)) != NULL) {
        uint32_t to = mail_target(m);

        *c->mails_end[shard][to] = m;
        c->mails_end[shard][to] = mail_next(m);
        c->n_mails++;
    }
}

void
cluster_send(struct cluster *c, uint32_t shard, enum peer_class pc, const struct dt_route *route,
             struct dt_buffer *header, const struct dt_span *frames, uint32_t n_frames)
{
    struct request req = {
        .peer_class = pc, .route = *route, .n_frames = n_frames, .frames = frames};
    struct outbox out;

    req.header = (struct dt_span){header->data, header->len};
    outbox_init(&out);
    shard_dispatch(c->shards[shard], &req, c->now, &out);
    collect(c, shard, &out);
    dt_buffer_deinit(header);
}

bool
cluster_deliver(struct cluster *c, uint32_t pick)
{
    uint32_t i, k = 0, from = 0, to = 0, n = 0;
    struct outbox out;
    struct mail *m;

    for (i = 0; i < 64; i++)
        n += c->mails[i / 8][i % 8] != NULL;
    if (!n)
        return false;
    pick %= n;
    for (i = 0; i < 64; i++) {
        if (c->mails[i / 8][i % 8] && k++ == pick) {
            from = i / 8;
            to = i % 8;
        }
    }
    m = c->mails[from][to];
    c->mails[from][to] = *mail_next(m);
    if (!c->mails[from][to])
        c->mails_end[from][to] = &c->mails[from][to];
    *mail_next(m) = NULL;
    c->n_mails--;
    outbox_init(&out);
    shard_mail(c->shards[to], m, c->now, &out);
    collect(c, to, &out);
    return true;
}

void
cluster_settle(struct cluster *c)
{
    while (cluster_deliver(c, 0))
        ;
}

void
cluster_tick(struct cluster *c, int64_t ms)
{
    int64_t end = c->now + ms;
    struct outbox out;
    uint32_t i;

    do {
        c->now = c->now + SHARD_TICK_MS < end ? c->now + SHARD_TICK_MS : end;
        for (i = 0; i < c->n_shards; i++) {
            outbox_init(&out);
            shard_tick(c->shards[i], c->now, &out);
            collect(c, i, &out);
        }
        cluster_settle(c);
    } while (c->now < end);
}

struct answer *
cluster_take(struct cluster *c, uint64_t request)
{
    uint32_t i;

    for (i = 0; i < c->n_answers; i++) {
        struct answer *a = c->answers[i];

        if (a->head.request != request)
            continue;
        memmove(&c->answers[i], &c->answers[i + 1], (c->n_answers - i - 1) * sizeof(a));
        c->n_answers--;
        return a;
    }
    return NULL;
}

struct answer *
cluster_status(struct cluster *c)
{
    struct dt_route admin = {.len = 1, .id = {'a'}};
    uint64_t id = ++c->next_request;
    struct dt_buffer header = {0};
    struct answer *a;

    dt_simple_encode(&header, DT_OP_ADMIN_STATUS, id, 0);
    cluster_send(c, 0, PEER_ADMIN, &admin, &header, NULL, 0);
    cluster_settle(c);
    a = cluster_take(c, id);
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    return a;
}

uint32_t
cluster_count(const struct cluster *c, uint64_t request)
{
    uint32_t i, n = 0;

    for (i = 0; i < c->n_answers; i++)
        n += c->answers[i]->head.request == request;
    return n;
}

void
worker_new_routes(struct worker_at *w)
{
    uint32_t i;

    w->route_serial++;
    for (i = 0; i < 8; i++) {
        w->routes[i].len = 5;
        memset(w->routes[i].id, 0, sizeof(w->routes[i].id));
        w->routes[i].id[1] = (unsigned char)(w->rank + 1);
        w->routes[i].id[2] = w->uuid[0];
        w->routes[i].id[3] = (unsigned char)w->route_serial;
        w->routes[i].id[4] = (unsigned char)(w->route_serial >> 8);
        w->sessions[i] = 0;
    }
}

void
worker_at_init(struct worker_at *w, uint32_t rank)
{
    static unsigned char serial;

    memset(w, 0, sizeof(*w));
    w->rank = rank;
    memset(w->uuid, ++serial, sizeof(w->uuid));
    worker_new_routes(w);
}

enum dt_status
worker_hello(struct cluster *c, struct worker_at *w, uint32_t shard, const char *job,
             const struct dt_job_params *params, bool fresh, struct dt_hello_reply *reply)
{
    struct dt_hello *m = calloc(1, sizeof(*m));
    struct dt_buffer header = {0}, body = {0};
    uint64_t id = ++c->next_request;
    struct dt_span frame;
    struct answer *a;
    enum dt_status status;

    memcpy(m->uuid, w->uuid, DT_UUID_BYTES);
    m->rank = w->rank;
    strcpy(m->job, job);
    m->fresh = fresh;
    m->incarnation = w->incarnation;
    m->life = w->life;
    strcpy(m->endpoint, "tcp://127.0.0.1:2222");
    strcpy(m->host, "here");
    m->pid = 1;
    dt_hello_encode(&header, id, m);
    dt_job_params_encode(&body, params);
    frame = (struct dt_span){body.data, body.len};
    cluster_send(c, shard, PEER_LOCAL, &w->routes[shard], &header, &frame, 1);
    cluster_settle(c);
    dt_buffer_deinit(&body);
    free(m);
    a = cluster_take(c, id);
    if (!a)
        return DT_E_TIMEOUT;
    status = a->head.status;
    if (status == DT_OK) {
        cr_assert_eq(dt_hello_reply_decode(&a->head, reply), DT_OK);
        w->sessions[shard] = a->head.session;
        w->incarnation = reply->incarnation;
        if (shard == 0) {
            w->life = reply->life;
            w->must_join = reply->must_join;
        }
    }
    answer_free(a);
    return status;
}

void
worker_hello_all(struct cluster *c, struct worker_at *w, const char *job,
                 const struct dt_job_params *params)
{
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    uint32_t i;

    for (i = 0; i < c->n_shards; i++)
        cr_assert_eq(worker_hello(c, w, i, job, params, false, reply), DT_OK, "HELLO to shard %u",
                     i);
    free(reply);
}

static struct answer *
declare(struct cluster *c, struct worker_at *w, const struct dt_declaration *decls, uint32_t n)
{
    struct dt_buffer header = {0}, body = {0};
    uint64_t id = ++c->next_request;
    struct dt_span frame;
    uint32_t i;

    dt_declare_encode(&header, id, w->sessions[0]);
    dt_write_array(&body, n);
    for (i = 0; i < n; i++)
        dt_declaration_encode(&body, &decls[i]);
    frame = (struct dt_span){body.data, body.len};
    cluster_send(c, 0, PEER_LOCAL, &w->routes[0], &header, &frame, 1);
    cluster_settle(c);
    dt_buffer_deinit(&body);
    return cluster_take(c, id);
}

enum dt_status
worker_declare(struct cluster *c, struct worker_at *w, const struct dt_declaration *decls,
               uint32_t n)
{
    struct answer *a = declare(c, w, decls, n);
    enum dt_status status = a ? a->head.status : DT_E_TIMEOUT;

    answer_free(a);
    return status;
}

uint64_t
worker_init_done(struct cluster *c, struct worker_at *w, const struct dt_declaration *decls,
                 uint32_t n, bool sent, enum dt_status *status)
{
    struct dt_init_done m = {.sent = sent, .n_variables = n, .fingerprint = DT_FINGERPRINT_START};
    struct dt_buffer header = {0};
    uint64_t id = ++c->next_request, state = 0;
    struct dt_step_msg reply;
    struct answer *a;
    uint32_t i;

    for (i = 0; i < n; i++)
        m.fingerprint = dt_declaration_fingerprint(m.fingerprint, &decls[i]);
    dt_init_done_encode(&header, id, w->sessions[0], &m);
    cluster_send(c, 0, PEER_LOCAL, &w->routes[0], &header, NULL, 0);
    cluster_settle(c);
    a = cluster_take(c, id);
    *status = a ? a->head.status : DT_E_TIMEOUT;
    if (*status == DT_OK) {
        cr_assert_eq(dt_step_decode(&a->head, &reply), DT_OK);
        state = reply.step;
    }
    answer_free(a);
    return state;
}

enum dt_status
worker_step_op(struct cluster *c, struct worker_at *w, enum dt_op op, uint64_t step, uint64_t *out)
{
    struct dt_buffer header = {0};
    uint64_t id = ++c->next_request;
    struct dt_step_msg reply;
    enum dt_status status;
    struct answer *a;

    dt_step_encode(&header, op, id, w->sessions[0], step);
    cluster_send(c, 0, PEER_LOCAL, &w->routes[0], &header, NULL, 0);
    cluster_settle(c);
    a = cluster_take(c, id);
    status = a ? a->head.status : DT_E_TIMEOUT;
    if (status == DT_OK && out) {
        cr_assert_eq(dt_step_decode(&a->head, &reply), DT_OK);
        *out = reply.step;
    }
    answer_free(a);
    return status;
}

uint64_t
worker_data(struct cluster *c, struct worker_at *w, uint32_t shard, enum dt_op op,
            const struct dt_data *m, const float *const *frames, const uint32_t *n_elements)
{
    struct dt_buffer header = {0};
    struct dt_span spans[DT_MAX_ITEMS];
    uint64_t id = ++c->next_request;
    uint32_t i;

    dt_data_encode(&header, op, id, w->sessions[shard], m);
    for (i = 0; frames && i < m->n_items; i++)
        spans[i] = (struct dt_span){(const unsigned char *)frames[i], n_elements[i] * 4};
    cluster_send(c, shard, PEER_LOCAL, &w->routes[shard], &header, spans, frames ? m->n_items : 0);
    return id;
}

static void
read_homes(struct answer *a, uint32_t n, uint8_t *homes)
{
    struct dt_reader r;
    uint32_t i;

    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    dt_reader_init(&r, a->body.data, a->body.len);
    cr_assert_eq(dt_read_array(&r, n), n);
    for (i = 0; i < n; i++) {
        struct dt_bytes b;

        cr_assert_eq(dt_read_array(&r, 3), 3);
        cr_assert_eq(dt_read_u64(&r), i);
        cr_assert_eq(dt_read_u64(&r), i);
        b = dt_read_bin(&r, 1);
        cr_assert_eq(b.len, 1);
        homes[i] = b.p[0];
    }
    cr_assert(!r.failed);
}

static void
send_init(struct cluster *c, struct worker_at *w, uint32_t variable, uint32_t home, uint32_t n,
          float value)
{
    struct dt_data m = {.n_items = 1};
    float *values = calloc(n, sizeof(*values));
    const float *frame = values;
    struct answer *a;
    uint32_t i;

    for (i = 0; i < n; i++)
        values[i] = value;
    m.items[0].variable = variable;
    a = cluster_take(c, worker_data(c, w, home, DT_OP_INIT, &m, &frame, &n));
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    answer_free(a);
    free(values);
}

void
cluster_start_job(struct cluster *c, struct worker_at *w, const char *job,
                  const struct dt_job_params *params, uint32_t n_variables, uint32_t n, float lr,
                  float value, uint8_t *homes)
{
    struct dt_declaration *decls = calloc(n_variables, sizeof(*decls));
    enum dt_status status;
    struct answer *a;
    uint64_t state;
    uint32_t i;

    worker_hello_all(c, w, job, params);
    for (i = 0; i < n_variables; i++) {
        snprintf(decls[i].name, sizeof(decls[i].name), "v%u", i);
        decls[i].n_dims = 1;
        decls[i].shape[0] = n;
        strcpy(decls[i].optimizer, lr < 0 ? "add-damped" : "sgd");
        decls[i].n_params = lr >= 0;
        strcpy(decls[i].params[0].name, "lr");
        decls[i].params[0].value = lr;
        strcpy(decls[i].init, "zeros");
    }
    a = declare(c, w, decls, n_variables);
    read_homes(a, n_variables, homes);
    answer_free(a);
    state = worker_init_done(c, w, decls, n_variables, false, &status);
    if (state == DT_INIT_GRANTED) {
        for (i = 0; i < n_variables; i++)
            send_init(c, w, i, homes[i], n, value);
        state = worker_init_done(c, w, decls, n_variables, true, &status);
    }
    cr_assert_eq(state, DT_INIT_COMPLETE);
    free(decls);
}
