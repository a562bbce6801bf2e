/*
 * swarm.c - many workers in one process: start and end of a job, requests and answers. Main thread.
 */
#include "swarm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "proto/base/clock.h"
#include "proto/base/random.h"
#include "proto/wire/declare.h"
#include "proto/wire/hello.h"
#include "proto/wire/params.h"

#define JOB "many"
#define FILL_BYTES (256 << 10) /* psd's together_bytes */
#define WINDOW 64              /* of the sockets */
#define LEASE_MS 600000        /* longer than any turn of silence */
#define PATIENCE_MS 60000

typedef void request_fn(struct swarm *s, struct swarm_worker *w, uint32_t shard);
typedef void answer_fn(struct swarm *s, struct swarm_worker *w, uint32_t shard,
                       struct dt_head *head, const struct dt_message *m);

void
swarm_send(struct swarm *s, struct swarm_lane *lane, const void *frame, size_t bytes)
{
    struct dt_out_frame out = {frame, bytes, NULL, NULL};

    if (s->header.failed ||
        dt_dealer_send(lane->dealer, s->header.data, s->header.len, &out, frame ? 1 : 0) != DT_SENT)
        bench_fail("a send was refused");
    dt_buffer_clear(&s->header);
    lane->n_unanswered++;
}

bool
swarm_receive(struct swarm_lane *lane, struct dt_message *m, struct dt_head *head)
{
    while (dt_dealer_recv(lane->dealer, m) == DT_OK) {
        if (dt_head_decode(head, m->header.p, m->header.bytes) != DT_OK)
            bench_fail("an answer is malformed");
        if (head->status == DT_OK) {
            lane->n_unanswered--;
            return true;
        }
        if (head->status != DT_PARKED)
            bench_fail("%s: %s", dt_op_name(head->op & ~(unsigned)DT_REPLY_BIT), head->text);
        dt_message_deinit(m);
    }
    return false;
}

void
swarm_await(struct swarm_lane *lane, struct dt_message *m, struct dt_head *head)
{
    int64_t end = dt_now_ms() + PATIENCE_MS;

    while (!swarm_receive(lane, m, head)) {
        struct dt_poll_item item = {.dealer = lane->dealer, .fd = -1};

        if (dt_now_ms() > end)
            bench_fail("no answer");
        dt_poll(&item, 1, 100);
    }
}

/* The same request of the workers from `first` on to one shard, all under way at once; then their answers. */
static void
ask_all(struct swarm *s, uint32_t first, uint32_t n, uint32_t shard, request_fn *ask,
        answer_fn *take)
{
    struct dt_message m;
    struct dt_head head;
    uint32_t i;

    for (i = first; i < first + n; i++)
        ask(s, &s->workers[i], shard);
    for (i = first; i < first + n; i++) {
        swarm_await(&s->workers[i].lanes[shard], &m, &head);
        if (take)
            take(s, &s->workers[i], shard, &head, &m);
        dt_message_deinit(&m);
    }
}

static void
say_hello(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    struct dt_hello m = {.rank = w->rank, .job = JOB, .life = w->life, .host = "bench"};
    struct dt_job_params params;
    struct dt_buffer body = {0};

    memcpy(m.uuid, w->uuid, sizeof(m.uuid));
    m.incarnation = w->incarnation;
    snprintf(m.endpoint, sizeof(m.endpoint), "%s", s->endpoint);
    dt_job_params_default(&params);
    params.workers = s->n_workers;
    params.consistency = DT_ASYNC;
    params.lease_ms = LEASE_MS;
    dt_hello_encode(&s->header, ++s->last_request, &m);
    dt_job_params_encode(&body, &params);
    swarm_send(s, &w->lanes[shard], body.data, body.len);
    dt_buffer_deinit(&body);
}

static struct dt_dealer *
connect_to(struct swarm *s, const char *endpoint)
{
    struct dt_error err = {DT_OK, ""};
    struct dt_dealer *d = dt_dealer_create(s->context, endpoint, WINDOW, &err);

    if (!d)
        bench_fail("%s", err.text);
    return d;
}

/* Shard 0 tells where the others are. */
static void
connect_to_others(struct swarm *s, struct swarm_worker *w, const struct dt_hello_reply *r)
{
    char endpoint[DT_MAX_ENDPOINT + 32];
    struct swarm_lane *lanes = realloc(w->lanes, r->n_shards * sizeof(*lanes));
    uint32_t i;

    if (!lanes)
        bench_fail("short of memory");
    w->lanes = lanes;
    memset(lanes + 1, 0, (r->n_shards - 1) * sizeof(*lanes));
    for (i = 1; i < r->n_shards; i++) {
        if (dt_endpoint_peer(s->endpoint, r->peers[i], endpoint, sizeof(endpoint)) != DT_OK)
            bench_fail("where is shard %u?", i);
        lanes[i].dealer = connect_to(s, endpoint);
    }
    s->n_shards = r->n_shards;
}

static void
take_hello(struct swarm *s, struct swarm_worker *w, uint32_t shard, struct dt_head *head,
           const struct dt_message *m)
{
    struct dt_hello_reply r;

    (void)m;
    if (dt_hello_reply_decode(head, &r) != DT_OK)
        bench_fail("HELLO: what does psd say?");
    w->lanes[shard].session = head->session;
    w->life = r.life;
    w->incarnation = r.incarnation;
    if (shard == 0)
        connect_to_others(s, w, &r);
}

/* Two a shard: the one that workers use, and one that fills the shard, so that the next goes to another. */
static uint32_t
n_variables(const struct swarm *s)
{
    return 2 * s->n_shards;
}

static uint32_t
elements_of(const struct swarm *s, uint32_t variable)
{
    return variable % 2 ? FILL_BYTES / sizeof(float) : s->elements;
}

static void
declaration(const struct swarm *s, uint32_t i, struct dt_declaration *d)
{
    memset(d, 0, sizeof(*d));
    snprintf(d->name, sizeof(d->name), "v%u", i);
    d->n_dims = 1;
    d->shape[0] = elements_of(s, i);
    strcpy(d->optimizer, "sgd");
    d->n_params = 1;
    strcpy(d->params[0].name, "lr");
    d->params[0].value = s->rate;
    strcpy(d->init, "zeros");
}

static void
declare(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    struct dt_buffer body = {0};
    struct dt_declaration d;
    uint32_t i;

    dt_declare_encode(&s->header, ++s->last_request, w->lanes[shard].session);
    dt_write_array(&body, n_variables(s));
    for (i = 0; i < n_variables(s); i++) {
        declaration(s, i, &d);
        dt_declaration_encode(&body, &d);
    }
    swarm_send(s, &w->lanes[shard], body.data, body.len);
    dt_buffer_deinit(&body);
}

/* Variable i must live on shard i / 2. */
static void
take_homes(struct swarm *s, struct swarm_worker *w, uint32_t shard, struct dt_head *head,
           const struct dt_message *m)
{
    struct dt_reader r;
    struct dt_bytes home;
    uint32_t i;

    (void)w;
    (void)shard;
    (void)head;
    if (m->n_frames != 1)
        bench_fail("DECLARE's reply has no body");
    dt_reader_init(&r, m->frames[0].p, m->frames[0].bytes);
    if (dt_read_array(&r, n_variables(s)) != n_variables(s))
        bench_fail("DECLARE's reply has not all variables");
    for (i = 0; i < n_variables(s); i++) {
        dt_read_array(&r, 3);
        dt_read_u64(&r);
        dt_read_u64(&r);
        home = dt_read_bin(&r, 1);
        if (r.failed || home.len != 1 || home.p[0] != i / 2)
            bench_fail("variable %u is not on shard %u", i, i / 2);
    }
}

static void
say_init_done(struct swarm *s, struct swarm_worker *w, bool sent)
{
    struct dt_init_done m = {
        .sent = sent, .n_variables = n_variables(s), .fingerprint = DT_FINGERPRINT_START};
    struct dt_declaration d;
    uint32_t i;

    for (i = 0; i < n_variables(s); i++) {
        declaration(s, i, &d);
        m.fingerprint = dt_declaration_fingerprint(m.fingerprint, &d);
    }
    dt_init_done_encode(&s->header, ++s->last_request, w->lanes[0].session, &m);
    swarm_send(s, &w->lanes[0], NULL, 0);
}

/* The first worker is to give the values; the others find them there. */
static void
ask_init(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    (void)shard;
    w->expected = w->rank == 0 ? DT_INIT_GRANTED : DT_INIT_COMPLETE;
    say_init_done(s, w, false);
}

static void
end_init(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    (void)shard;
    w->expected = DT_INIT_COMPLETE;
    say_init_done(s, w, true);
}

static void
send_zeros_of(struct swarm *s, struct swarm_worker *w, uint32_t shard, uint32_t variable)
{
    struct dt_data m = {.n_items = 1, .items = {{.variable = variable}}};
    uint32_t n = elements_of(s, variable);
    float *zeros = calloc(n, sizeof(*zeros));

    if (!zeros)
        bench_fail("short of memory");
    dt_data_encode(&s->header, DT_OP_INIT, ++s->last_request, w->lanes[shard].session, &m);
    swarm_send(s, &w->lanes[shard], zeros, n * sizeof(*zeros));
    free(zeros);
}

static void
send_zeros(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    send_zeros_of(s, w, shard, swarm_variable(shard));
}

static void
send_filling(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    send_zeros_of(s, w, shard, swarm_variable(shard) + 1);
}

static void
take_state(struct swarm *s, struct swarm_worker *w, uint32_t shard, struct dt_head *head,
           const struct dt_message *m)
{
    struct dt_step_msg state;

    (void)s;
    (void)shard;
    (void)m;
    if (dt_step_decode(head, &state) != DT_OK || state.step != w->expected)
        bench_fail("INIT_DONE: state %llu instead of %d", (unsigned long long)state.step,
                   w->expected);
}

static void
create_workers(struct swarm *s)
{
    uint32_t i;

    s->workers = calloc(s->n_workers, sizeof(*s->workers));
    for (i = 0; s->workers && i < s->n_workers; i++) {
        struct swarm_worker *w = &s->workers[i];

        w->rank = i;
        dt_random_bytes(w->uuid, sizeof(w->uuid));
        w->lanes = calloc(1, sizeof(*w->lanes));
        if (!w->lanes)
            bench_fail("short of memory");
        w->lanes[0].dealer = connect_to(s, s->endpoint);
    }
    if (!s->workers)
        bench_fail("short of memory");
}

/* The first declares and gives the values; the others compare and find them there. */
static void
start_job(struct swarm *s)
{
    uint32_t i, others = s->n_workers - 1;

    ask_all(s, 0, s->n_workers, 0, say_hello, take_hello);
    for (i = 1; i < s->n_shards; i++)
        ask_all(s, 0, s->n_workers, i, say_hello, take_hello);
    ask_all(s, 0, 1, 0, declare, take_homes);
    ask_all(s, 1, others, 0, declare, take_homes);
    ask_all(s, 0, 1, 0, ask_init, take_state);
    for (i = 0; i < s->n_shards; i++) {
        ask_all(s, 0, 1, i, send_zeros, NULL);
        ask_all(s, 0, 1, i, send_filling, NULL);
    }
    ask_all(s, 0, 1, 0, end_init, take_state);
    ask_all(s, 1, others, 0, ask_init, take_state);
}

void
swarm_open(struct swarm *s, const char *endpoint, uint32_t n_workers, uint32_t elements, float rate)
{
    struct dt_error err = {DT_OK, ""};

    *s = (struct swarm){
        .endpoint = endpoint, .n_workers = n_workers, .elements = elements, .rate = rate};
    s->context = dt_context_create(false, 1, &err);
    if (!s->context)
        bench_fail("%s", err.text);
    create_workers(s);
    start_job(s);
}

static void
say_leave(struct swarm *s, struct swarm_worker *w, uint32_t shard)
{
    dt_step_encode(&s->header, DT_OP_LEAVE, ++s->last_request, w->lanes[shard].session,
                   DT_NO_VERSION);
    swarm_send(s, &w->lanes[shard], NULL, 0);
}

void
swarm_close(struct swarm *s)
{
    uint32_t i, k;

    ask_all(s, 0, s->n_workers, 0, say_leave, NULL);
    for (i = 0; i < s->n_workers; i++) {
        for (k = 0; k < s->n_shards; k++)
            dt_dealer_destroy(s->workers[i].lanes[k].dealer, 0);
        free(s->workers[i].lanes);
    }
    dt_context_destroy(s->context);
    dt_buffer_deinit(&s->header);
    free(s->workers);
}
