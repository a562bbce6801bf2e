/*
 * fake.c - the scripted psd. One thread owns the ROUTERs; all state is under the lock.
 */
#include "fake.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/wire/member.h"
#include "proto/wire/stats.h"

char fake_log_text[8192];

void
fake_lock(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
}

void
fake_unlock(struct fake *f)
{
    pthread_mutex_unlock(&f->lock);
}

struct call {
    struct fake *f;
    struct fake_shard *shard;
    uint32_t index;
    const struct dt_message *message;
    struct dt_head head;
};

static void
transmit(struct fake_shard *shard, const struct dt_route *to, struct dt_buffer *b,
         const struct dt_payload *frames, uint32_t n)
{
    dt_router_send(shard->router, to, b->data, b->len, frames, n, NULL);
    dt_buffer_deinit(b);
}

static bool
is_swallowed(struct fake *f, unsigned op)
{
    if (f->swallow == 0 || f->swallow_op != op)
        return false;
    f->swallow--;
    return true;
}

static void
reply(struct call *c, struct dt_buffer *b)
{
    if (is_swallowed(c->f, c->head.op))
        dt_buffer_deinit(b);
    else
        transmit(c->shard, &c->message->route, b, NULL, 0);
}

static void
reply_status(struct call *c, enum dt_status status)
{
    struct dt_buffer b = {0};

    dt_head_reply(&b, c->head.op, c->head.request, c->head.session, status,
                  status == DT_OK ? "" : c->f->text, c->f->step, 0);
    reply(c, &b);
}

static void
on_hello(struct call *c)
{
    struct fake *f = c->f;
    struct dt_buffer b = {0};
    struct dt_hello hello;
    struct dt_hello_reply m;
    uint32_t i;

    cr_assert_eq(dt_hello_decode(&c->head, &hello), DT_OK);
    f->task = hello.task;
    if (c->index == 0 && f->hello_status != DT_OK) {
        reply_status(c, f->hello_status);
        return;
    }
    if (c->index > 0 && (hello.life != f->life || hello.incarnation != f->incarnation)) {
        reply_status(c, DT_R_HELLO_FIRST);
        return;
    }
    memset(&m, 0, sizeof(m));
    m.incarnation = f->incarnation;
    m.life = f->life;
    m.shard = c->index;
    m.n_shards = f->n_shards;
    for (i = 0; i < f->n_shards; i++)
        memcpy(m.peers[i], f->peers[i], sizeof(m.peers[i]));
    m.window = f->window;
    m.window_bytes = f->window_bytes;
    m.lease_ms = f->lease_ms;
    m.must_join = f->must_join;
    c->shard->session = ++f->next_session;
    c->shard->route = c->message->route;
    c->shard->in_flight = 0;
    c->shard->bytes_in_flight = 0;
    for (i = 0; i < f->n_held; i++) {
        if (f->held[i].shard == c->index)
            f->held[i--] = f->held[--f->n_held];
    }
    dt_hello_reply_encode(&b, c->head.request, c->shard->session, f->step, &m);
    reply(c, &b);
}

static void
take_declaration(struct fake *f, const struct dt_declaration *d)
{
    struct fake_variable *v = &f->variables[f->n_variables++];

    v->elements = dt_declaration_elements(d);
    v->n_slices = dt_n_slices(v->elements);
    v->task = d->task;
    v->lr = d->params[0].value;
    v->values = calloc(v->elements, sizeof(float));
    cr_assert(f->n_variables <= FAKE_VARIABLES && v->n_slices <= FAKE_SLICES && v->values);
}

static void
on_declare(struct call *c)
{
    struct fake *f = c->f;
    struct dt_buffer b = {0}, body = {0};
    struct dt_payload frame;
    struct dt_declaration d;
    struct dt_reader r;
    uint32_t i, k, n, mine = 0;

    dt_reader_init(&r, c->message->frames[0].p, c->message->frames[0].bytes);
    n = dt_read_array(&r, DT_MAX_VARIABLES);
    for (i = 0; i < n; i++) {
        cr_assert_eq(dt_declaration_decode(&r, &d, NULL), DT_OK);
        if (f->n_declared == 0)
            take_declaration(f, &d);
    }
    f->n_declared++;
    for (i = 0; i < n; i++)
        mine += f->variables[i].task == f->task;
    dt_write_array(&body, mine);
    for (i = 0; i < n; i++) {
        unsigned char homes[FAKE_SLICES];

        if (f->variables[i].task != f->task)
            continue;
        for (k = 0; k < f->variables[i].n_slices; k++)
            homes[k] = (unsigned char)((i + k) % f->n_shards);
        dt_write_array(&body, 3);
        dt_write_u64(&body, i);
        dt_write_u64(&body, i + 100);
        dt_write_bin(&body, homes, f->variables[i].n_slices);
    }
    dt_head_reply(&b, c->head.op, c->head.request, c->head.session, DT_OK, "", f->step, 0);
    frame = (struct dt_payload){NULL, body.data, body.len};
    transmit(c->shard, &c->message->route, &b, &frame, 1);
    dt_buffer_deinit(&body);
}

static void
reply_waiting(struct call *c, enum dt_status status, uint32_t reason)
{
    struct dt_waiting w = {.reason = reason, .step = c->f->step, .n_ranks = 2, .ranks = {1, 3}};
    struct dt_buffer b = {0};

    dt_waiting_encode(&b, (enum dt_op)c->head.op, c->head.request, c->head.session, status,
                      c->f->step, &w);
    reply(c, &b);
}

static void
reply_step(struct call *c, uint64_t step)
{
    struct dt_buffer b = {0};

    dt_step_reply_encode(&b, (enum dt_op)c->head.op, c->head.request, c->head.session, c->f->step,
                         step);
    reply(c, &b);
}

static struct fake_held *
hold(struct call *c, const struct dt_data *data, const struct dt_data_result *results,
     uint64_t bytes)
{
    struct fake *f = c->f;
    struct fake_held *h = &f->held[f->n_held++];

    cr_assert(f->n_held <= FAKE_HELD);
    h->route = c->message->route;
    h->shard = c->index;
    h->op = c->head.op;
    h->request = c->head.request;
    h->session = c->head.session;
    h->bytes = bytes;
    if (data)
        h->data = *data;
    if (results)
        memcpy(h->results, results, sizeof(h->results));
    return h;
}

static void
on_init_done(struct call *c)
{
    struct dt_init_done m;

    cr_assert_eq(dt_init_done_decode(&c->head, &m), DT_OK);
    if (c->f->park_init && !m.sent) {
        hold(c, NULL, NULL, 0);
        reply_waiting(c, DT_PARKED, DT_WAIT_INIT);
        return;
    }
    if (m.sent)
        c->f->initialised = true;
    reply_step(c, c->f->initialised ? DT_INIT_COMPLETE : DT_INIT_GRANTED);
}

static struct fake_variable *
find(struct fake *f, const struct dt_item *it)
{
    cr_assert(it->variable >= 100 && it->variable - 100 < f->n_variables);
    return &f->variables[it->variable - 100];
}

static uint64_t
slice_bytes(struct fake *f, const struct dt_item *it)
{
    return dt_slice_elements(find(f, it)->elements, it->slice) * 4ull;
}

static void
push_slice(struct fake *f, const struct dt_data *m, uint32_t i, const struct dt_message *message,
           struct dt_data_result *result)
{
    struct fake_variable *v = find(f, &m->items[i]);
    uint32_t s = m->items[i].slice, k, n = dt_slice_elements(v->elements, s);
    float *values = v->values + (uint64_t)s * DT_SLICE_ELEMENTS;

    result->fate = DT_FATE_ACCUMULATED;
    if (v->counters[s] == m->counter) {
        f->resent++;
        result->push_version = v->versions[s];
        return;
    }
    if (m->items[i].version < v->versions[s]) {
        result->fate = DT_FATE_STALE;
        result->push_version = v->versions[s];
        return;
    }
    v->counters[s] = m->counter;
    f->applied++;
    if (f->n_pushed < FAKE_HELD)
        f->pushed[f->n_pushed++] = m->items[i].variable - 100;
    for (k = 0; k < n && message->n_frames; k++) {
        float g;

        memcpy(&g, message->frames[i].p + 4 * (size_t)k, sizeof(g));
        values[k] -= v->lr * g;
    }
    result->push_version = ++v->versions[s];
    if (v->versions[s] > f->step)
        f->step = v->versions[s];
}

static void
send_data(struct fake *f, struct fake_held *h)
{
    struct dt_payload frames[DT_MAX_ITEMS];
    struct dt_data_reply m = {.n_items = h->data.n_items};
    struct dt_buffer b = {0};
    uint32_t i, n = h->op == DT_OP_PUSH ? 0 : h->data.n_items;

    for (i = 0; i < h->data.n_items; i++) {
        const struct dt_item *it = &h->data.items[i];
        struct fake_variable *v = find(f, it);

        m.items[i] = h->results[i];
        m.items[i].version = v->versions[it->slice];
        m.items[i].modified = true;
        if (f->illegal == FAKE_OLD_VERSION)
            m.items[i].version = it->want - 1;
        if (f->illegal == FAKE_BAD_FATE)
            m.items[i].fate = 77;
        frames[i] =
            (struct dt_payload){NULL, v->values + (uint64_t)it->slice * DT_SLICE_ELEMENTS,
                                slice_bytes(f, it) - (f->illegal == FAKE_SHORT_FRAME ? 4 : 0)};
    }
    m.n_items -= f->illegal == FAKE_FEW_ITEMS;
    if (f->illegal == FAKE_NO_FRAMES)
        n = 0;
    dt_data_reply_encode(&b, (enum dt_op)h->op, h->request, h->session, f->step, &m);
    if (f->illegal == FAKE_GARBAGE)
        memset(b.data, 0xc1, b.len);
    if (is_swallowed(f, h->op))
        dt_buffer_deinit(&b);
    else
        transmit(&f->shards[h->shard], &h->route, &b, frames, n);
}

static void
note_window(struct call *c, uint64_t bytes)
{
    struct fake *f = c->f;

    c->shard->in_flight++;
    c->shard->bytes_in_flight += bytes;
    if (c->shard->in_flight > f->most_in_flight)
        f->most_in_flight = c->shard->in_flight;
    if (c->shard->bytes_in_flight > f->most_bytes)
        f->most_bytes = c->shard->bytes_in_flight;
}

static void
on_data(struct call *c)
{
    struct dt_data_result results[DT_MAX_ITEMS];
    struct fake *f = c->f;
    struct fake_held *h;
    struct dt_data m;
    uint64_t bytes = 0;
    uint32_t i;

    cr_assert_eq(dt_data_decode(&c->head, &m), DT_OK);
    memset(results, 0, sizeof(results));
    if (f->data_status != DT_OK) {
        reply_status(c, f->data_status);
        return;
    }
    for (i = 0; i < m.n_items; i++)
        bytes += slice_bytes(f, &m.items[i]) * (c->head.op == DT_OP_PULL ? 1 : 2);
    for (i = 0; i < m.n_items && c->head.op != DT_OP_PULL; i++)
        push_slice(f, &m, i, c->message, &results[i]);
    note_window(c, bytes);
    h = hold(c, &m, results, bytes);
    if (f->park && c->head.op != DT_OP_PUSH) {
        c->shard->in_flight--;
        c->shard->bytes_in_flight -= bytes;
        reply_waiting(c, DT_PARKED, DT_WAIT_STEP);
        return;
    }
    if (f->slow)
        return;
    c->shard->in_flight--;
    c->shard->bytes_in_flight -= bytes;
    send_data(f, h);
    f->n_held--;
}

static void
on_init(struct call *c)
{
    struct fake *f = c->f;
    struct dt_data m;
    uint32_t i;

    cr_assert_eq(dt_data_decode(&c->head, &m), DT_OK);
    cr_assert_eq(m.n_items, c->message->n_frames);
    for (i = 0; i < m.n_items; i++)
        memcpy(find(f, &m.items[i])->values + (uint64_t)m.items[i].slice * DT_SLICE_ELEMENTS,
               c->message->frames[i].p, c->message->frames[i].bytes);
    reply_status(c, DT_OK);
}

static void
on_stats(struct call *c)
{
    struct dt_buffer b = {0}, body = {0};
    struct dt_payload frame;

    dt_write_map(&body, 2);
    dt_write_str(&body, "other");
    dt_write_u64(&body, 1);
    dt_write_str(&body, "rounds");
    dt_write_u64(&body, 21);
    dt_head_reply(&b, c->head.op, c->head.request, c->head.session, DT_OK, "", c->f->step, 0);
    frame = (struct dt_payload){NULL, body.data, body.len};
    transmit(c->shard, &c->message->route, &b, &frame, 1);
    dt_buffer_deinit(&body);
}

static void
on_step(struct call *c)
{
    struct fake *f = c->f;
    struct dt_step_msg m;

    cr_assert_eq(dt_step_decode(&c->head, &m), DT_OK);
    if (c->head.op == DT_OP_LEAVE) {
        f->left_at = m.step;
        if (is_swallowed(f, DT_OP_LEAVE))
            return;
        reply_status(c, f->leave_status);
        return;
    }
    f->last_join = m.step;
    f->must_join = false;
    reply_step(c, m.step > f->join_step ? m.step : f->join_step);
}

static void
dispatch(struct call *c)
{
    struct fake *f = c->f;

    f->seen[c->head.op & 63]++;
    if (f->mute)
        return;
    if (c->head.op == DT_OP_HELLO) {
        on_hello(c);
        return;
    }
    if (c->head.session != c->shard->session || !c->shard->session ||
        c->shard->route.len != c->message->route.len ||
        memcmp(c->shard->route.id, c->message->route.id, c->shard->route.len) != 0) {
        reply_status(c, DT_R_HELLO_REQUIRED);
        return;
    }
    switch ((int)c->head.op) {
    case DT_OP_HEARTBEAT:
        reply_waiting(c, DT_OK, f->n_held && f->park ? DT_WAIT_STEP : DT_WAIT_NOTHING);
        break;
    case DT_OP_DECLARE:
        on_declare(c);
        break;
    case DT_OP_INIT_DONE:
        on_init_done(c);
        break;
    case DT_OP_INIT:
        on_init(c);
        break;
    case DT_OP_JOIN:
    case DT_OP_LEAVE:
        on_step(c);
        break;
    case DT_OP_STATS:
        on_stats(c);
        break;
    case DT_OP_GOODBYE:
        break;
    default:
        on_data(c);
        break;
    }
}

static void
serve(struct fake *f, uint32_t index)
{
    struct dt_message message;
    struct call c = {.f = f, .shard = &f->shards[index], .index = index, .message = &message};

    while (dt_router_recv(c.shard->router, &message) == DT_OK) {
        if (dt_head_decode(&c.head, message.header.p, message.header.bytes) == DT_OK)
            dispatch(&c);
        dt_message_deinit(&message);
    }
}

static void
release(struct fake *f)
{
    uint32_t i;

    for (i = 0; i < f->n_held; i++) {
        if (f->slow) {
            f->shards[f->held[i].shard].in_flight--;
            f->shards[f->held[i].shard].bytes_in_flight -= f->held[i].bytes;
        }
        send_data(f, &f->held[i]);
    }
    f->n_held = 0;
}

static void
grant(struct fake *f)
{
    struct dt_buffer b = {0};
    struct fake_held *h = &f->held[0];

    cr_assert_eq(f->n_held, 1);
    f->park_init = false;
    f->n_held = 0;
    dt_step_reply_encode(&b, (enum dt_op)h->op, h->request, h->session, f->step, DT_INIT_GRANTED);
    transmit(&f->shards[h->shard], &h->route, &b, NULL, 0);
}

static void
goodbye(struct fake *f)
{
    uint32_t i;

    for (i = 0; i < f->n_shards; i++) {
        struct dt_buffer b = {0};

        dt_head_reply(&b, DT_OP_GOODBYE, 0, f->shards[i].session, DT_OK, "", f->step, 0);
        transmit(&f->shards[i], &f->shards[i].route, &b, NULL, 0);
    }
}

/* Let the thread that owns the sockets do it. */
static void
command(struct fake *f, void (*what)(struct fake *f))
{
    bool over = false;

    fake_lock(f);
    f->command = what;
    fake_unlock(f);
    while (!over) {
        dt_sleep_ms(2);
        fake_lock(f);
        over = f->command == NULL;
        fake_unlock(f);
    }
}

static void *
run(void *arg)
{
    struct fake *f = arg;
    struct dt_poll_item items[FAKE_SHARDS];
    uint32_t i;

    while (!atomic_load(&f->stop)) {
        for (i = 0; i < f->n_shards; i++)
            items[i] = (struct dt_poll_item){f->shards[i].router, NULL, -1, false};
        dt_poll(items, f->n_shards, 5);
        fake_lock(f);
        for (i = 0; i < f->n_shards; i++)
            serve(f, i);
        if (f->command)
            f->command(f);
        f->command = NULL;
        fake_unlock(f);
    }
    return NULL;
}

static void
bind_shard(struct fake *f, uint32_t i, const char *endpoint)
{
    struct dt_router_options options = {.window = 256, .local = true};
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_error err;

    f->shards[i].router = dt_router_create(f->context, &options, &err);
    cr_assert(f->shards[i].router, "%s", err.text);
    cr_assert_eq(dt_router_bind(f->shards[i].router, endpoint, 0600, bound, &err), DT_OK, "%s",
                 err.text);
    if (i == 0)
        snprintf(f->endpoint, sizeof(f->endpoint), "%s", bound);
    snprintf(f->peers[i], sizeof(f->peers[i]), "%s", strrchr(bound, ':') + 1);
}

struct fake *
fake_start(uint32_t n_shards, const char *endpoint)
{
    static uint64_t next_incarnation = 7000;
    struct fake *f = calloc(1, sizeof(*f));
    uint32_t i;

    f->held = calloc(FAKE_HELD, sizeof(*f->held));
    f->n_shards = n_shards;
    f->incarnation = ++next_incarnation;
    f->life = 1;
    f->window = 32;
    f->window_bytes = 64 << 20;
    f->lease_ms = 1000;
    f->text = "the script says no";
    pthread_mutex_init(&f->lock, NULL);
    f->context = dt_context_create(true, 1, NULL);
    for (i = 0; i < n_shards; i++)
        bind_shard(f, i, i == 0 && endpoint ? endpoint : "tcp://127.0.0.1:0");
    cr_assert_eq(pthread_create(&f->thread, NULL, run, f), 0);
    return f;
}

void
fake_stop(struct fake *f)
{
    uint32_t i;

    if (!f)
        return;
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    for (i = 0; i < f->n_shards; i++)
        dt_router_destroy(f->shards[i].router);
    dt_context_destroy(f->context);
    for (i = 0; i < f->n_variables; i++)
        free(f->variables[i].values);
    pthread_mutex_destroy(&f->lock);
    free(f->held);
    free(f);
}

uint32_t
fake_seen(struct fake *f, unsigned op)
{
    uint32_t n;

    fake_lock(f);
    n = f->seen[op];
    fake_unlock(f);
    return n;
}

void
fake_wait_seen(struct fake *f, unsigned op, uint32_t n)
{
    int64_t deadline = dt_now_ms() + 10000;

    while (fake_seen(f, op) < n) {
        cr_assert(dt_now_ms() < deadline, "op %u was not seen %u times", op, n);
        dt_sleep_ms(5);
    }
}

void
fake_release(struct fake *f)
{
    command(f, release);
}

void
fake_grant(struct fake *f)
{
    command(f, grant);
}

void
fake_fence(struct fake *f)
{
    uint32_t i;

    fake_lock(f);
    for (i = 0; i < f->n_shards; i++)
        f->shards[i].session = 0;
    fake_unlock(f);
}

void
fake_new_life(struct fake *f)
{
    fake_fence(f);
    fake_lock(f);
    f->life++;
    f->must_join = true;
    fake_unlock(f);
}

void
fake_goodbye(struct fake *f)
{
    command(f, goodbye);
}

void
fake_log(void *arg, enum dtw_log_level level, const char *line)
{
    size_t used = strlen(fake_log_text);

    (void)arg;
    snprintf(fake_log_text + used, sizeof(fake_log_text) - used, "%d %s\n", (int)level, line);
}

struct dtw_client *
fake_open(struct fake **fakes, unsigned n, int64_t retry_for_ms)
{
    const char *ps[8];
    struct dtw_options o;
    struct dtw_client *client;
    struct dtw_error err;
    unsigned i;

    for (i = 0; i < n; i++)
        ps[i] = fakes[i]->endpoint;
    dtw_options_init(&o);
    o.ps = ps;
    o.n_ps = n;
    o.job = "test";
    o.lease_ms = fakes[0]->lease_ms;
    o.waiting_ms = 200;
    o.retry_for_ms = retry_for_ms;
    o.log = fake_log;
    cr_assert_eq(dtw_open(&o, &client, &err), DTW_OK, "%s", err.text);
    return client;
}

void
fake_ones(void *arg, unsigned index, float *values, uint64_t n)
{
    uint64_t i;

    (void)arg;
    for (i = 0; i < n; i++)
        values[i] = (float)(index + 1);
}

struct dtw_client *
fake_ready(struct fake *f, unsigned n, uint64_t elements)
{
    struct dtw_client *client = fake_open(&f, 1, 10000);
    struct dtw_error err;
    uint64_t step = 99;
    unsigned i, index;

    for (i = 0; i < n; i++) {
        char name[16];
        struct dtw_variable v = {
            .name = name, .n_dims = 1, .shape = &elements, .optimizer = "sgd", .lr = 0.5f};

        snprintf(name, sizeof(name), "w%u", i);
        cr_assert_eq(dtw_declare(client, &v, &index, &err), DTW_OK, "%s", err.text);
        cr_assert_eq(index, i);
    }
    cr_assert_eq(dtw_init(client, fake_ones, NULL, &step, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(step, 0);
    return client;
}
