/*
 * orders.c - random push and pull orders of 64 slices by 4 workers with a window of 8 over real
 * sockets against a real psd: 1 000 orders, none may block. Raw protocol: one DEALER a shard and worker.
 *
 * usage: orders ENDPOINT N_ORDERS SEED; psd must run with window = 8. Exit 0: all orders ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/random.h"
#include "proto/net/dealer.h"
#include "proto/wire/data.h"
#include "proto/wire/declare.h"
#include "proto/wire/hello.h"
#include "proto/wire/member.h"
#include "proto/wire/params.h"
#include "proto/wire/stats.h"

#define WORKERS 4
#define SLICES 64
#define WINDOW 8
#define N 16
#define LIMIT_MS 10000 /* of one order: ten-fold and more */

struct op { /* a push or a pull of one slice */
    uint32_t slice;
    bool push;
    bool sent, parked, done;
    uint64_t request;
};

struct lane { /* one worker's connection to one shard */
    struct dt_dealer *dealer;
    uint64_t session;
    uint32_t in_flight;
};

struct worker {
    unsigned char uuid[DT_UUID_BYTES];
    uint32_t rank;
    uint64_t life, incarnation;
    struct lane lanes[DT_MAX_SHARDS];
    struct op ops[2 * SLICES];
    uint32_t n_done;
};

struct test {
    struct dt_context *context;
    const char *endpoint;
    uint32_t n_shards;
    uint8_t homes[SLICES];
    struct worker workers[WORKERS];
    uint64_t next_request;
    uint64_t rng;
};

static void
fail(const char *what)
{
    fprintf(stderr, "orders: %s\n", what);
    exit(1);
}

static uint32_t
rnd(struct test *t, uint32_t n)
{
    t->rng ^= t->rng << 13;
    t->rng ^= t->rng >> 7;
    t->rng ^= t->rng << 17;
    return (uint32_t)((t->rng >> 11) % n);
}

static void
send_header(struct lane *lane, struct dt_buffer *header, const void *body, size_t bytes)
{
    struct dt_out_frame frame = {body, bytes, NULL, NULL};

    if (dt_dealer_send(lane->dealer, header->data, header->len, &frame, body ? 1 : 0) != DT_SENT)
        fail("a send was refused");
    dt_buffer_deinit(header);
}

/* Wait for the final answer to `request`; for the start only. */
static void
await(struct lane *lane, uint64_t request, struct dt_message *m, struct dt_head *head)
{
    int64_t end = dt_now_ms() + LIMIT_MS;

    while (dt_now_ms() < end) {
        struct dt_poll_item item = {.dealer = lane->dealer, .fd = -1};

        dt_poll(&item, 1, 100);
        if (dt_dealer_recv(lane->dealer, m) != DT_OK)
            continue;
        if (dt_head_decode(head, m->header.p, m->header.bytes) != DT_OK)
            fail("an answer is malformed");
        if (head->request == request && head->status != DT_PARKED) {
            if (head->status != DT_OK)
                fail(head->text);
            return;
        }
        dt_message_deinit(m);
    }
    fail("no answer at the start");
}

static void
hello(struct test *t, struct worker *w, uint32_t shard, struct dt_hello_reply *reply)
{
    struct dt_hello *m = calloc(1, sizeof(*m));
    struct dt_buffer header = {0}, body = {0};
    struct dt_job_params params;
    struct dt_message message;
    struct dt_head head;
    uint64_t id = ++t->next_request;

    dt_job_params_default(&params);
    params.workers = WORKERS;
    params.lease_ms = 60000;
    memcpy(m->uuid, w->uuid, DT_UUID_BYTES);
    m->rank = w->rank;
    strcpy(m->job, "orders");
    m->life = w->life;
    m->incarnation = w->incarnation;
    strncpy(m->endpoint, t->endpoint, DT_MAX_ENDPOINT);
    strcpy(m->host, "test");
    dt_hello_encode(&header, id, m);
    dt_job_params_encode(&body, &params);
    send_header(&w->lanes[shard], &header, body.data, body.len);
    await(&w->lanes[shard], id, &message, &head);
    if (dt_hello_reply_decode(&head, reply) != DT_OK)
        fail("HELLO's reply is malformed");
    w->lanes[shard].session = head.session;
    w->life = reply->life;
    w->incarnation = reply->incarnation;
    dt_message_deinit(&message);
    dt_buffer_deinit(&body);
    free(m);
}

static void
connect_worker(struct test *t, struct worker *w)
{
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    struct dt_hello_reply *other = calloc(1, sizeof(*other));
    char endpoint[DT_MAX_ENDPOINT + 32];
    uint32_t i;

    dt_random_bytes(w->uuid, DT_UUID_BYTES);
    w->lanes[0].dealer = dt_dealer_create(t->context, t->endpoint, WINDOW, NULL);
    hello(t, w, 0, reply);
    t->n_shards = reply->n_shards;
    if (reply->window != WINDOW)
        fail("psd must run with window = 8");
    for (i = 1; i < t->n_shards; i++) {
        dt_endpoint_peer(t->endpoint, reply->peers[i], endpoint, sizeof(endpoint));
        w->lanes[i].dealer = dt_dealer_create(t->context, endpoint, WINDOW, NULL);
        hello(t, w, i, other);
    }
    free(reply);
    free(other);
}

static void
declaration(struct dt_declaration *d, uint32_t i)
{
    memset(d, 0, sizeof(*d));
    snprintf(d->name, sizeof(d->name), "v%u", i);
    d->n_dims = 1;
    d->shape[0] = N;
    strcpy(d->optimizer, "sgd");
    d->n_params = 1;
    strcpy(d->params[0].name, "lr");
    d->params[0].value = .5f;
    strcpy(d->init, "zeros");
}

static void
declare(struct test *t, struct worker *w)
{
    struct dt_buffer header = {0}, body = {0};
    struct dt_message message;
    struct dt_declaration d;
    struct dt_reader r;
    struct dt_head head;
    uint64_t id = ++t->next_request;
    uint32_t i;

    dt_declare_encode(&header, id, w->lanes[0].session);
    dt_write_array(&body, SLICES);
    for (i = 0; i < SLICES; i++) {
        declaration(&d, i);
        dt_declaration_encode(&body, &d);
    }
    send_header(&w->lanes[0], &header, body.data, body.len);
    await(&w->lanes[0], id, &message, &head);
    if (message.n_frames != 1)
        fail("DECLARE's reply has no body");
    dt_reader_init(&r, message.frames[0].p, message.frames[0].bytes);
    for (i = dt_read_array(&r, SLICES) == SLICES ? 0 : SLICES; i < SLICES; i++) {
        dt_read_array(&r, 3);
        dt_read_u64(&r);
        dt_read_u64(&r);
        t->homes[i] = dt_read_bin(&r, 1).p[0];
    }
    if (r.failed)
        fail("DECLARE's reply is malformed");
    dt_message_deinit(&message);
    dt_buffer_deinit(&body);
}

static uint64_t
init_done(struct test *t, struct worker *w, bool sent)
{
    struct dt_init_done m = {
        .sent = sent, .n_variables = SLICES, .fingerprint = DT_FINGERPRINT_START};
    struct dt_buffer header = {0};
    struct dt_message message;
    struct dt_declaration d;
    struct dt_step_msg step;
    struct dt_head head;
    uint64_t id = ++t->next_request;
    uint32_t i;

    for (i = 0; i < SLICES; i++) {
        declaration(&d, i);
        m.fingerprint = dt_declaration_fingerprint(m.fingerprint, &d);
    }
    dt_init_done_encode(&header, id, w->lanes[0].session, &m);
    send_header(&w->lanes[0], &header, NULL, 0);
    await(&w->lanes[0], id, &message, &head);
    dt_step_decode(&head, &step);
    dt_message_deinit(&message);
    return step.step;
}

static void
initialise(struct test *t, struct worker *w)
{
    static const float zeros[N];
    uint32_t i;

    if (init_done(t, w, false) != DT_INIT_GRANTED)
        return;
    for (i = 0; i < SLICES; i++) {
        struct dt_data m = {.n_items = 1};
        struct dt_buffer header = {0};
        struct lane *lane = &w->lanes[t->homes[i]];
        struct dt_message message;
        struct dt_head head;

        m.items[0].variable = i;
        dt_data_encode(&header, DT_OP_INIT, ++t->next_request, lane->session, &m);
        send_header(lane, &header, zeros, sizeof(zeros));
        await(lane, t->next_request, &message, &head);
        dt_message_deinit(&message);
    }
    if (init_done(t, w, true) != DT_INIT_COMPLETE)
        fail("the initial values did not count");
}

/* One order: for each slice a push of `step` and a pull of step + 1, shuffled. */
static void
shuffle(struct test *t, struct worker *w)
{
    uint32_t i;

    memset(w->ops, 0, sizeof(w->ops));
    w->n_done = 0;
    for (i = 0; i < 2 * SLICES; i++) {
        w->ops[i].slice = i / 2;
        w->ops[i].push = i % 2;
    }
    for (i = 2 * SLICES; i-- > 1;) {
        uint32_t k = rnd(t, i + 1);
        struct op x = w->ops[i];

        w->ops[i] = w->ops[k];
        w->ops[k] = x;
    }
}

static void
send_op(struct test *t, struct worker *w, struct op *op, uint64_t step)
{
    static const float ones[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct lane *lane = &w->lanes[t->homes[op->slice]];
    struct dt_data m = {
        .counter = step * SLICES + op->slice + 1, .weight = 1, .count = 1, .n_items = 1};
    struct dt_buffer header = {0};

    m.items[0].variable = op->slice;
    m.items[0].version = op->push ? step : DT_NO_VERSION;
    m.items[0].want = step + 1;
    op->request = ++t->next_request;
    op->sent = true;
    lane->in_flight++;
    dt_data_encode(&header, op->push ? DT_OP_PUSH : DT_OP_PULL, op->request, lane->session, &m);
    send_header(lane, &header, op->push ? ones : NULL, sizeof(ones));
}

/* In the order of the list, a request waits only for its own connection's window. */
static void
send_what_fits(struct test *t, struct worker *w, uint64_t step)
{
    uint32_t i;

    for (i = 0; i < 2 * SLICES; i++) {
        struct op *op = &w->ops[i];

        if (!op->sent && w->lanes[t->homes[op->slice]].in_flight < WINDOW)
            send_op(t, w, op, step);
    }
}

static void
check_values(const struct dt_message *m, uint64_t step)
{
    float x;

    if (m->n_frames != 1 || m->frames[0].bytes != N * sizeof(float))
        fail("a pull has no values");
    memcpy(&x, m->frames[0].p, sizeof(x));
    if (x != -.5f * (float)(step + 1))
        fail("a pull has wrong values");
}

static void
take_answer(struct worker *w, struct lane *lane, const struct dt_message *m, uint64_t step)
{
    struct dt_head head;
    uint32_t i;

    if (dt_head_decode(&head, m->header.p, m->header.bytes) != DT_OK)
        fail("an answer is malformed");
    if (head.status != DT_OK && head.status != DT_PARKED)
        fail(head.text);
    for (i = 0; i < 2 * SLICES; i++) {
        struct op *op = &w->ops[i];

        if (op->request != head.request)
            continue;
        if (!op->parked)
            lane->in_flight--;
        if (head.status == DT_PARKED) {
            op->parked = true;
            return;
        }
        op->done = true;
        w->n_done++;
        if (!op->push)
            check_values(m, step);
    }
}

static void
receive(struct test *t, uint64_t step)
{
    struct dt_poll_item items[WORKERS * DT_MAX_SHARDS];
    uint32_t i, n = WORKERS * t->n_shards;

    for (i = 0; i < n; i++)
        items[i] = (struct dt_poll_item){
            .dealer = t->workers[i / t->n_shards].lanes[i % t->n_shards].dealer, .fd = -1};
    dt_poll(items, n, 100);
    for (i = 0; i < n; i++) {
        struct worker *w = &t->workers[i / t->n_shards];
        struct lane *lane = &w->lanes[i % t->n_shards];
        struct dt_message m;

        while (items[i].ready && dt_dealer_recv(lane->dealer, &m) == DT_OK) {
            take_answer(w, lane, &m, step);
            dt_message_deinit(&m);
        }
    }
}

static bool
all_done(const struct test *t)
{
    int i;

    for (i = 0; i < WORKERS; i++) {
        if (t->workers[i].n_done < 2 * SLICES)
            return false;
    }
    return true;
}

static void
run_order(struct test *t, uint64_t step)
{
    int64_t end = dt_now_ms() + LIMIT_MS;
    int i;

    for (i = 0; i < WORKERS; i++)
        shuffle(t, &t->workers[i]);
    while (!all_done(t)) {
        for (i = 0; i < WORKERS; i++)
            send_what_fits(t, &t->workers[i], step);
        receive(t, step);
        if (dt_now_ms() > end) {
            fprintf(stderr, "orders: order %llu blocks\n", (unsigned long long)step);
            exit(1);
        }
    }
}

static void
leave(struct test *t, struct worker *w, uint64_t step)
{
    struct dt_buffer header = {0};
    struct dt_message message;
    struct dt_head head;
    uint32_t i;

    dt_step_encode(&header, DT_OP_LEAVE, ++t->next_request, w->lanes[0].session, step);
    send_header(&w->lanes[0], &header, NULL, 0);
    await(&w->lanes[0], t->next_request, &message, &head);
    dt_message_deinit(&message);
    for (i = 0; i < t->n_shards; i++)
        dt_dealer_destroy(w->lanes[i].dealer, 0);
}

int
main(int argc, char **argv)
{
    struct test *t = calloc(1, sizeof(*t));
    uint64_t step, n;
    uint32_t i;

    if (argc != 4)
        fail("usage: orders ENDPOINT N_ORDERS SEED");
    t->endpoint = argv[1];
    n = strtoull(argv[2], NULL, 10);
    t->rng = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
    t->context = dt_context_create(false, 1, NULL);
    for (i = 0; i < WORKERS; i++) {
        t->workers[i].rank = i;
        connect_worker(t, &t->workers[i]);
        declare(t, &t->workers[i]);
        initialise(t, &t->workers[i]);
    }
    for (step = 0; step < n; step++)
        run_order(t, step);
    for (i = 0; i < WORKERS; i++)
        leave(t, &t->workers[i], n - 1);
    dt_context_destroy(t->context);
    free(t);
    printf("%llu orders, seed %s\n", (unsigned long long)n, argv[3]);
    return 0;
}
