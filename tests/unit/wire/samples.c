/*
 * samples.c - every message with extreme values, and the decoders by number.
 */
#include "tests/unit/wire/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
fill_text(char *out, size_t bytes, char c)
{
    memset(out, c, bytes - 1);
    out[bytes - 1] = '\0';
}

void
sample_hello(struct dt_hello *m)
{
    uint32_t i;

    memset(m, 0, sizeof(*m));
    memset(m->uuid, 0xff, sizeof(m->uuid));
    m->rank = DT_NO_RANK;
    m->task = DT_MAX_TASKS - 1;
    fill_text(m->job, sizeof(m->job), 'j');
    m->fresh = true;
    m->incarnation = UINT64_MAX;
    m->life = UINT64_MAX - 1;
    fill_text(m->endpoint, sizeof(m->endpoint), 'e');
    fill_text(m->host, sizeof(m->host), 'h');
    m->pid = UINT32_MAX;
    m->n_features = DT_MAX_FEATURES;
    for (i = 0; i < m->n_features; i++)
        fill_text(m->features[i], sizeof(m->features[i]), (char)('a' + i));
}

void
sample_hello_reply(struct dt_hello_reply *m)
{
    uint32_t i;

    memset(m, 0, sizeof(*m));
    m->incarnation = UINT64_MAX;
    m->life = UINT64_MAX;
    m->shard = DT_MAX_SHARDS - 1;
    m->n_shards = DT_MAX_SHARDS;
    for (i = 0; i < m->n_shards; i++)
        fill_text(m->peers[i], sizeof(m->peers[i]), '9');
    m->job_id = UINT64_MAX;
    m->must_join = true;
    m->first_step = UINT64_MAX;
    m->initialised = true;
    m->window = UINT32_MAX;
    m->window_bytes = UINT64_MAX;
    m->lease_ms = INT64_MAX;
    m->n_features = DT_MAX_FEATURES;
    for (i = 0; i < m->n_features; i++)
        fill_text(m->features[i], sizeof(m->features[i]), 'f');
}

void
sample_declaration(struct dt_declaration *d)
{
    uint32_t i;

    memset(d, 0, sizeof(*d));
    fill_text(d->name, sizeof(d->name), 'v');
    d->n_dims = DT_MAX_DIMS;
    for (i = 0; i < d->n_dims; i++)
        d->shape[i] = 32; /* 32^8 = 2^40 */
    fill_text(d->optimizer, sizeof(d->optimizer), 'o');
    d->n_params = DT_MAX_OPTIMIZER_PARAMS;
    for (i = 0; i < d->n_params; i++) {
        snprintf(d->params[i].name, sizeof(d->params[i].name), "param%02u", i);
        d->params[i].value = i % 2 ? 3.4028234e38f : -1e-45f;
    }
    fill_text(d->init, sizeof(d->init), 'i');
    d->seed = UINT64_MAX;
    d->task = DT_MAX_TASKS - 1;
}

void
sample_data(struct dt_data *m, uint32_t n_items)
{
    uint32_t i;

    memset(m, 0, sizeof(*m));
    m->counter = UINT64_MAX;
    m->weight = DT_MAX_WEIGHT;
    m->clock = n_items > 1 ? DT_MAX_CLOCK : 0;
    m->count = UINT32_MAX;
    m->n_items = n_items;
    for (i = 0; i < n_items; i++)
        m->items[i] =
            (struct dt_item){UINT32_MAX - i, UINT32_MAX, i % 2 ? i : DT_NO_VERSION, UINT64_MAX - i};
}

void
sample_data_reply(struct dt_data_reply *m, uint32_t n_items)
{
    uint32_t i;

    memset(m, 0, sizeof(*m));
    m->n_items = n_items;
    for (i = 0; i < n_items; i++)
        m->items[i] =
            (struct dt_data_result){(uint8_t)(i % 7), UINT64_MAX - i, UINT64_MAX, i % 2 == 0};
}

static struct dt_buffer *
add(struct samples *s, const char *name, enum decoder decoder)
{
    struct sample *sample = &s->list[s->n++];

    if (s->n > MAX_SAMPLES)
        abort();
    memset(sample, 0, sizeof(*sample));
    snprintf(sample->name, sizeof(sample->name), "%s", name);
    sample->decoder = decoder;
    return &sample->bytes;
}

static void
add_hello(struct samples *s)
{
    struct dt_hello_reply *reply = malloc(sizeof(*reply));
    struct dt_hello hello;

    if (!reply)
        abort();
    sample_hello(&hello);
    dt_hello_encode(add(s, "hello-full", DECODE_HELLO), UINT64_MAX, &hello);
    memset(&hello, 0, sizeof(hello));
    strcpy(hello.job, "j");
    dt_hello_encode(add(s, "hello-least", DECODE_HELLO), 1, &hello);
    sample_hello_reply(reply);
    dt_hello_reply_encode(add(s, "hello-reply-full", DECODE_HELLO_REPLY), UINT64_MAX, UINT64_MAX,
                          UINT64_MAX, reply);
    memset(reply, 0, sizeof(*reply));
    reply->n_shards = reply->window = 1;
    reply->window_bytes = 1;
    reply->lease_ms = 1;
    strcpy(reply->peers[0], ".1");
    dt_hello_reply_encode(add(s, "hello-reply-least", DECODE_HELLO_REPLY), 1, 2, 3, reply);
    free(reply);
}

static void
add_data(struct samples *s)
{
    static const enum dt_op ops[] = {DT_OP_INIT, DT_OP_PUSH, DT_OP_PULL, DT_OP_PUSHPULL};
    struct dt_data_reply reply;
    struct dt_data data;
    char name[40];
    unsigned i, k;

    for (i = 0; i < 4; i++) {
        for (k = 1; k <= DT_MAX_ITEMS; k += DT_MAX_ITEMS - 1) {
            sample_data(&data, k);
            sample_data_reply(&reply, k);
            snprintf(name, sizeof(name), "%s-%u", dt_op_name(ops[i]), k);
            dt_data_encode(add(s, name, DECODE_DATA), ops[i], UINT64_MAX, UINT64_MAX, &data);
            if (ops[i] == DT_OP_INIT)
                continue;
            snprintf(name, sizeof(name), "%s-reply-%u", dt_op_name(ops[i]), k);
            dt_data_reply_encode(add(s, name, DECODE_DATA_REPLY), ops[i], UINT64_MAX, UINT64_MAX,
                                 UINT64_MAX, &reply);
        }
    }
}

static void
add_members(struct samples *s)
{
    struct dt_waiting full = {.reason = DT_WAIT_STEP, .step = UINT64_MAX}, none = {0};
    struct dt_init_done done = {true, DT_MAX_VARIABLES, UINT64_MAX};
    uint32_t i;

    full.n_ranks = DT_MAX_WAITED_RANKS;
    for (i = 0; i < full.n_ranks; i++)
        full.ranks[i] = DT_MAX_RANKS - 1 - i;
    dt_step_encode(add(s, "join", DECODE_STEP), DT_OP_JOIN, 2, 3, 0);
    dt_step_encode(add(s, "leave", DECODE_STEP), DT_OP_LEAVE, 2, UINT64_MAX, DT_NO_VERSION);
    dt_step_encode(add(s, "clock", DECODE_STEP), DT_OP_CLOCK, UINT64_MAX, 1, UINT64_MAX - 1);
    dt_clock_encode(add(s, "clock-ssp", DECODE_STEP), 6, 1, 0, DT_MAX_CLOCK);
    dt_step_encode(add(s, "wait-step", DECODE_STEP), DT_OP_WAIT_STEP, 5, 1, 65536);
    dt_step_reply_encode(add(s, "join-reply", DECODE_STEP), DT_OP_JOIN, 1, 2, 3, UINT64_MAX);
    dt_heartbeat_encode(add(s, "heartbeat", DECODE_HEAD), UINT64_MAX, UINT64_MAX);
    dt_waiting_encode(add(s, "heartbeat-reply", DECODE_WAITING), DT_OP_HEARTBEAT, 1, 2, DT_OK, 3,
                      &none);
    dt_waiting_encode(add(s, "parked", DECODE_WAITING), DT_OP_PUSHPULL, UINT64_MAX, UINT64_MAX,
                      DT_PARKED, UINT64_MAX, &full);
    dt_init_done_encode(add(s, "init-done", DECODE_INIT_DONE), 1, 2, &done);
    dt_step_reply_encode(add(s, "init-done-reply", DECODE_STEP), DT_OP_INIT_DONE, 1, 2, 3,
                         DT_INIT_GRANTED);
}

static void
add_sets(struct samples *s)
{
    struct dt_admin_set full = {.value = -1e300, .step = UINT64_MAX - 1};
    const struct dt_admin_set least = {
        .job = "j", .key = "lr", .value = 0.5, .step = DT_NO_VERSION};

    fill_text(full.job, sizeof(full.job), 'j');
    fill_text(full.key, sizeof(full.key), 'k');
    fill_text(full.variable, sizeof(full.variable), 'v');
    dt_set_encode(add(s, "set", DECODE_SET), 1, 2, &(struct dt_set){"stop_step", UINT64_MAX});
    dt_admin_set_encode(add(s, "admin-set-full", DECODE_ADMIN_SET), UINT64_MAX, &full);
    dt_admin_set_encode(add(s, "admin-set-least", DECODE_ADMIN_SET), 1, &least);
}

static void
add_control(struct samples *s)
{
    struct dt_kick kick = {.rank = DT_MAX_RANKS - 1};
    struct dt_placement placement = {.first = UINT32_MAX};
    char text[2 * DT_MAX_TEXT];

    fill_text(text, sizeof(text), 't');
    fill_text(kick.job, sizeof(kick.job), 'k');
    dt_kick_encode(add(s, "kick", DECODE_KICK), 7, &kick);
    fill_text(placement.job, sizeof(placement.job), 'p');
    dt_placement_encode(add(s, "placement", DECODE_PLACEMENT), 8, &placement);
    add_sets(s);
    dt_declare_encode(add(s, "declare", DECODE_HEAD), 1, 2);
    dt_simple_encode(add(s, "stats", DECODE_HEAD), DT_OP_STATS, 1, 2);
    dt_simple_encode(add(s, "admin-status", DECODE_HEAD), DT_OP_ADMIN_STATUS, 1, 0);
    dt_simple_encode(add(s, "admin-shutdown", DECODE_HEAD), DT_OP_ADMIN_SHUTDOWN, 1, 0);
    dt_head_reply(add(s, "reject-text", DECODE_HEAD), DT_OP_PUSH, UINT64_MAX, UINT64_MAX,
                  DT_R_TOO_MANY_BAD, text, UINT64_MAX, 0);
    dt_head_reply(add(s, "goodbye", DECODE_HEAD), DT_OP_GOODBYE, 0, 9, DT_R_GOING_DOWN, "", 1, 0);
    dt_simple_encode(add(s, "goodbye-ack", DECODE_HEAD), DT_OP_GOODBYE, 0, 9);
}

static void
add_bodies(struct samples *s)
{
    struct dt_job_params p;
    struct dt_declaration d;
    struct dt_buffer *b;
    unsigned i;

    dt_job_params_default(&p);
    dt_job_params_encode(add(s, "params-default", DECODE_PARAMS), &p);
    p = (struct dt_job_params){.workers = DT_MAX_RANKS,
                               .tasks = DT_MAX_TASKS,
                               .consistency = DT_SSP,
                               .locking = DT_LOCK_NONE,
                               .aggregate = DT_MAX_RANKS,
                               .reduce = DT_REDUCE_SUM,
                               .on_loss = DT_ON_LOSS_FAIL,
                               .lease_ms = 3600000,
                               .start_timeout_ms = 31536000000,
                               .round_timeout_ms = 31536000000,
                               .max_bad = INT32_MAX,
                               .max_staleness = INT64_MAX,
                               .staleness_bound = DT_MAX_CLOCK,
                               .deterministic = 1,
                               .kernel = "SkylakeX"};
    dt_job_params_encode(add(s, "params-full", DECODE_PARAMS), &p);
    b = add(s, "declarations", DECODE_DECLARATIONS);
    dt_write_array(b, 3);
    sample_declaration(&d);
    for (i = 0; i < 2; i++)
        dt_declaration_encode(b, &d);
    memset(&d, 0, sizeof(d));
    strcpy(d.name, "x");
    strcpy(d.optimizer, "sgd");
    strcpy(d.init, "zeros");
    dt_declaration_encode(b, &d);
}

/* All kinds of msgpack objects, nested. */
static void
add_raw(struct samples *s)
{
    static const unsigned char raw[] = {
        0xdc, 0,    13,   0xc0, 0xc2, 0xc3, 0xd0, 0x80, 0xd1, 0x80, 0,    0xd2, 0x80, 0,
        0,    0,    0xc4, 2,    1,    2,    0xc7, 1,    5,    9,    0xd4, 1,    2,    0xd9,
        1,    'a',  0xcb, 0x3f, 0xf0, 0,    0,    0,    0,    0,    0,    0x82, 0xa1, 'k',
        0x91, 0x91, 0x90, 0xa1, 'l',  0x80, 0xd8, 7,    0,    0,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    };
    unsigned char deep[20];

    dt_buffer_append(add(s, "raw", DECODE_SKIP), raw, sizeof(raw));
    memset(deep, 0x91, 16);
    deep[16] = 0xc0;
    dt_buffer_append(add(s, "deep", DECODE_SKIP), deep, 17);
}

void
samples_create(struct samples *s)
{
    unsigned i;

    s->n = 0;
    add_hello(s);
    add_members(s);
    add_control(s);
    add_data(s);
    add_bodies(s);
    add_raw(s);
    for (i = 0; i < s->n; i++) {
        if (s->list[i].bytes.failed)
            abort();
    }
}

void
samples_deinit(struct samples *s)
{
    unsigned i;

    for (i = 0; i < s->n; i++)
        dt_buffer_deinit(&s->list[i].bytes);
}

static void
must(bool holds)
{
    if (!holds)
        abort();
}

/* What was accepted can be encoded again, within the limits, and is accepted again. */
static void
must_encode(const struct dt_buffer *b, enum dt_op op)
{
    struct dt_head head;

    must(!b->failed && b->len <= DT_MAX_HEADER_BYTES);
    must(dt_head_decode(&head, b->data, b->len) == DT_OK);
    must((head.op & ~(unsigned)DT_REPLY_BIT) == (unsigned)op);
}

static enum dt_status
decode_hello(struct dt_head *head)
{
    struct dt_buffer b = {0};
    struct dt_hello m;
    enum dt_status status = dt_hello_decode(head, &m);

    if (status != DT_OK)
        return status;
    must(m.job[0] && m.n_features <= DT_MAX_FEATURES && m.task < DT_MAX_TASKS);
    dt_hello_encode(&b, 1, &m);
    must_encode(&b, DT_OP_HELLO);
    dt_buffer_deinit(&b);
    return status;
}

static enum dt_status
decode_hello_reply(struct dt_head *head)
{
    struct dt_buffer b = {0};
    struct dt_hello_reply m;
    enum dt_status status = dt_hello_reply_decode(head, &m);

    if (status != DT_OK)
        return status;
    must(m.n_shards >= 1 && m.n_shards <= DT_MAX_SHARDS && m.shard < m.n_shards && m.window);
    dt_hello_reply_encode(&b, 1, 2, 3, &m);
    must_encode(&b, DT_OP_HELLO);
    dt_buffer_deinit(&b);
    return status;
}

static enum dt_status
decode_data(struct dt_head *head)
{
    enum dt_op op = (enum dt_op)(head->op & ~(unsigned)DT_REPLY_BIT);
    struct dt_buffer b = {0};
    struct dt_data m;
    enum dt_status status = dt_data_decode(head, &m);

    if (status != DT_OK)
        return status;
    must(m.n_items >= 1 && m.n_items <= DT_MAX_ITEMS && m.weight <= DT_MAX_WEIGHT &&
         m.clock <= DT_MAX_CLOCK);
    dt_data_encode(&b, op, 1, 2, &m);
    must_encode(&b, op);
    dt_buffer_deinit(&b);
    return status;
}

static enum dt_status
decode_data_reply(struct dt_head *head)
{
    enum dt_op op = (enum dt_op)(head->op & ~(unsigned)DT_REPLY_BIT);
    struct dt_buffer b = {0};
    struct dt_data_reply m;
    enum dt_status status = dt_data_reply_decode(head, &m);

    if (status != DT_OK)
        return status;
    must(m.n_items <= DT_MAX_ITEMS);
    dt_data_reply_encode(&b, op, 1, 2, 3, &m);
    must_encode(&b, op);
    dt_buffer_deinit(&b);
    return status;
}

static enum dt_status
decode_small(enum decoder decoder, struct dt_head *head)
{
    struct dt_step_msg step;
    struct dt_waiting waiting;
    struct dt_init_done done;
    struct dt_kick kick;
    struct dt_placement placement;
    struct dt_admin_set admin_set;
    struct dt_set set;
    enum dt_status status = DT_OK;

    switch (decoder) {
    case DECODE_STEP:
        return dt_step_decode(head, &step);
    case DECODE_WAITING:
        status = dt_waiting_decode(head, &waiting);
        must(waiting.n_ranks <= DT_MAX_WAITED_RANKS);
        return status;
    case DECODE_INIT_DONE:
        return dt_init_done_decode(head, &done);
    case DECODE_KICK:
        status = dt_kick_decode(head, &kick);
        must(status != DT_OK || (kick.job[0] && kick.rank < DT_MAX_RANKS));
        return status;
    case DECODE_SET:
        status = dt_set_decode(head, &set);
        must(status != DT_OK || set.key[0]);
        return status;
    case DECODE_ADMIN_SET:
        status = dt_admin_set_decode(head, &admin_set);
        must(status != DT_OK ||
             (admin_set.job[0] && admin_set.key[0] && isfinite(admin_set.value)));
        return status;
    case DECODE_PLACEMENT:
        status = dt_placement_decode(head, &placement);
        must(status != DT_OK || placement.job[0]);
        return status;
    default:
        return DT_OK;
    }
}

static enum dt_status
decode_header(enum decoder decoder, const void *data, size_t bytes)
{
    struct dt_head head;
    enum dt_status status = dt_head_decode(&head, data, bytes);

    must(status == DT_OK || status == DT_R_MALFORMED || status == DT_R_VERSION);
    must(strlen(head.text) <= DT_MAX_TEXT);
    if (status != DT_OK)
        return status;
    switch (decoder) {
    case DECODE_HELLO:
        return decode_hello(&head);
    case DECODE_HELLO_REPLY:
        return decode_hello_reply(&head);
    case DECODE_DATA:
        return decode_data(&head);
    case DECODE_DATA_REPLY:
        return decode_data_reply(&head);
    default:
        return decode_small(decoder, &head);
    }
}

static enum dt_status
decode_params(const void *data, size_t bytes)
{
    struct dt_error err = {DT_OK, ""};
    struct dt_job_params p, again;
    struct dt_buffer b = {0};
    enum dt_status status = dt_job_params_decode(&p, data, bytes, &err);

    must(status == DT_OK || (status == err.code && err.text[0]));
    if (status != DT_OK)
        return status;
    dt_job_params_encode(&b, &p);
    must(dt_job_params_decode(&again, b.data, b.len, &err) == DT_OK);
    must(dt_job_params_compare(&p, &again, &err) == DT_OK);
    dt_buffer_deinit(&b);
    return DT_OK;
}

static void
check_declaration(const struct dt_declaration *d)
{
    struct dt_error err = {DT_OK, ""};
    struct dt_declaration again;
    struct dt_buffer b = {0};
    struct dt_reader r;

    must(dt_declaration_elements(d) <= 1ull << 40);
    dt_declaration_encode(&b, d);
    dt_reader_init(&r, b.data, b.len);
    must(dt_declaration_decode(&r, &again, &err) == DT_OK && r.left == 0);
    must(dt_declaration_compare(d, &again, &err) == DT_OK);
    must(dt_declaration_fingerprint(1, d) == dt_declaration_fingerprint(1, &again));
    dt_buffer_deinit(&b);
}

static enum dt_status
decode_declarations(const void *data, size_t bytes)
{
    struct dt_error err = {DT_OK, ""};
    struct dt_declaration d;
    struct dt_reader r;
    enum dt_status status = DT_OK;
    uint32_t i, n;

    dt_reader_init(&r, data, bytes);
    n = dt_read_array(&r, DT_MAX_VARIABLES);
    for (i = 0; i < n && status == DT_OK; i++) {
        status = dt_declaration_decode(&r, &d, &err);
        if (status == DT_OK)
            check_declaration(&d);
        else
            must(status == err.code && err.text[0]);
    }
    return status == DT_OK && (r.failed || r.left) ? DT_R_MALFORMED : status;
}

enum dt_status
samples_decode(enum decoder decoder, const void *data, size_t bytes)
{
    struct dt_reader r;
    enum dt_status status;

    switch (decoder) {
    case DECODE_PARAMS:
        status = decode_params(data, bytes);
        break;
    case DECODE_DECLARATIONS:
        status = decode_declarations(data, bytes);
        break;
    case DECODE_SKIP:
        dt_reader_init(&r, data, bytes);
        dt_read_skip(&r);
        status = r.failed || r.left ? DT_R_MALFORMED : DT_OK;
        break;
    default:
        status = decode_header(decoder, data, bytes);
    }
    must(status == DT_OK || dt_status_is_reject(status));
    return status;
}
