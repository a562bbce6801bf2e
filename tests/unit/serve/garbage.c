/*
 * garbage.c - the dispatch under every kind of wrong message: truncations at every byte, flips of
 * every byte, counts that lie, deep nesting, wrong frame counts and sizes. It answers with a reject,
 * changes nothing that is visible, and goes on serving (CONTRACT, promise 1).
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

TestSuite(garbage, .timeout = 240);

struct fixture {
    struct cluster *c;
    struct worker_at w;
    struct dt_job_params params;
    uint8_t homes[2];
    uint64_t step;
};

static void
start(struct fixture *f, uint32_t n_shards)
{
    memset(f, 0, sizeof(*f));
    f->c = cluster_create(n_shards);
    dt_job_params_default(&f->params);
    f->params.lease_ms = 3600000;
    worker_at_init(&f->w, 0);
    cluster_start_job(f->c, &f->w, "job", &f->params, 2, 2, 1, 0, f->homes);
}

static void
drop_answers(struct cluster *c)
{
    while (c->n_answers)
        answer_free(c->answers[--c->n_answers]);
}

/* The job goes on: one more step of variable 0 is taken. */
static void
still_serves(struct fixture *f)
{
    struct dt_data d = {.weight = 1, .count = 1, .n_items = 1};
    float g[2] = {1, 1};
    const float *frame = g;
    struct dt_data_reply reply;
    struct answer *a;
    uint32_t n = 2;

    drop_answers(f->c);
    f->w.counter += 1000000; /* above what a mutated push may have used */
    d.counter = f->w.counter;
    d.items[0].version = f->step;
    d.items[0].want = f->step + 1;
    a = cluster_take(f->c, worker_data(f->c, &f->w, f->homes[0], DT_OP_PUSHPULL, &d, &frame, &n));
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    cr_assert_eq(dt_data_reply_decode(&a->head, &reply), DT_OK);
    f->step = reply.items[0].version;
    answer_free(a);
}

static void
send_raw(struct fixture *f, uint32_t shard, const void *data, size_t len, uint32_t n_frames)
{
    static const unsigned char bytes[8] = {0};
    struct dt_span frames[DT_MAX_ITEMS];
    struct dt_buffer header = {0};
    struct dt_route other = {.len = 3, .id = {9, 9, 9}};
    uint32_t i;

    for (i = 0; i < DT_MAX_ITEMS; i++)
        frames[i] = (struct dt_span){bytes, i % 9};
    if (len)
        dt_buffer_append(&header, data, len);
    cluster_send(f->c, shard, PEER_LOCAL, &other, &header, frames, n_frames);
    drop_answers(f->c);
}

static void
make_push(struct fixture *f, struct dt_buffer *b, enum dt_op op)
{
    struct dt_data d = {.counter = 5, .weight = 1, .count = 1, .n_items = 1};

    d.items[0].version = f->step;
    d.items[0].want = f->step;
    dt_data_encode(b, op, 77, f->w.sessions[f->homes[0]], &d);
}

Test(garbage, truncated_at_every_byte)
{
    struct fixture f;
    size_t i, n;

    start(&f, 2);
    for (n = 1, i = 0; i < n; i++) {
        struct dt_buffer b = {0};

        make_push(&f, &b, DT_OP_PUSHPULL);
        n = b.len;
        send_raw(&f, f.homes[0], b.data, i, 1);
        dt_buffer_deinit(&b);
    }
    still_serves(&f);
    cluster_destroy(f.c);
}

/* From the worker's own connection, so that the flips reach the handlers. */
Test(garbage, every_byte_flipped_on_a_live_session)
{
    static const enum dt_op ops[] = {DT_OP_PUSH, DT_OP_PULL, DT_OP_PUSHPULL, DT_OP_INIT};
    struct fixture f;
    size_t i, k, n;
    unsigned v;

    start(&f, 2);
    for (k = 0; k < 4; k++) {
        for (n = 1, i = 3; i < n; i++) {
            for (v = 1; v < 256; v += 7) {
                struct dt_buffer b = {0};
                float g[2] = {0, 0};
                struct dt_span frame = {(const unsigned char *)g, sizeof(g)};

                make_push(&f, &b, ops[k]);
                n = b.len;
                b.data[i] = (unsigned char)(b.data[i] + v);
                cluster_send(f.c, f.homes[0], PEER_LOCAL, &f.w.routes[f.homes[0]], &b, &frame,
                             ops[k] == DT_OP_PULL ? 0 : 1);
                drop_answers(f.c);
            }
        }
    }
    cluster_tick(f.c, 100);
    drop_answers(f.c);
    worker_new_routes(&f.w);
    worker_hello_all(f.c, &f.w, "job", &f.params);
    cluster_destroy(f.c);
}

Test(garbage, counts_that_lie_and_deep_nesting)
{
    static const unsigned char lies[][8] = {
        {0xdd, 0xff, 0xff, 0xff, 0xff},       {0xdd, 0x10, 0, 0, 0},
        {0xdf, 0xff, 0xff, 0xff, 0xff},       {0xdb, 0xff, 0xff, 0xff, 0xff},
        {0xc6, 0xff, 0xff, 0xff, 0xff},       {0x97, 1, 16, 1, 0xdd, 0xff, 0xff, 0xff},
        {0x95, 1, 1, 1, 1, 0xc6, 0xff, 0xff}, {0xc1},
        {0x98, 1, 16, 1, 1, 1, 1, 0xdf},      {0xff, 0xff, 0xff, 0xff, 0xff},
    };
    unsigned char deep[4000];
    struct fixture f;
    size_t i;

    start(&f, 1);
    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        send_raw(&f, 0, lies[i], sizeof(lies[i]), 0);
        send_raw(&f, 0, lies[i], 5, 3);
    }
    memset(deep, 0x91, sizeof(deep));
    send_raw(&f, 0, deep, sizeof(deep), 0);
    memset(deep, 0x81, sizeof(deep));
    send_raw(&f, 0, deep, sizeof(deep), 0);
    send_raw(&f, 0, "GET / HTTP/1.1\r\n\r\n", 18, 0);
    send_raw(&f, 0, "", 0, 0);
    still_serves(&f);
    cluster_destroy(f.c);
}

Test(garbage, frames_in_wrong_numbers_and_sizes_change_nothing)
{
    static const enum dt_op ops[] = {DT_OP_PUSH, DT_OP_PULL, DT_OP_PUSHPULL, DT_OP_INIT};
    static const unsigned char bytes[64] = {0};
    struct dt_span frames[DT_MAX_ITEMS];
    struct fixture f;
    uint32_t k, n, size;

    start(&f, 1);
    for (k = 0; k < 4; k++) {
        for (n = 0; n <= 3; n++) {
            for (size = 0; size < 12; size++) {
                struct dt_buffer b = {0};
                struct answer *a;
                uint32_t i;

                if (n == 1 && size == 8)
                    continue;
                if (n == 0 && ops[k] == DT_OP_PULL)
                    continue;
                for (i = 0; i < n; i++)
                    frames[i] = (struct dt_span){bytes, size};
                make_push(&f, &b, ops[k]);
                cluster_send(f.c, 0, PEER_LOCAL, &f.w.routes[0], &b, frames, n);
                a = cluster_take(f.c, 77);
                cr_assert_not_null(a);
                cr_assert(dt_status_is_reject(a->head.status), "op %d, %u frames of %u bytes",
                          (int)ops[k], n, size);
                answer_free(a);
            }
        }
    }
    still_serves(&f);
    cr_assert_eq(f.step, 1, "no wrong message has closed a round");
    cluster_destroy(f.c);
}

Test(garbage, control_bodies_flipped)
{
    struct fixture f;
    size_t i, n;
    unsigned v;

    start(&f, 3);
    for (n = 1, i = 0; i < n; i++) {
        for (v = 1; v < 256; v += 5) {
            struct dt_buffer header = {0}, body = {0};
            struct dt_span frame;

            dt_declare_encode(&header, 5, f.w.sessions[0]);
            dt_write_array(&body, 1);
            {
                struct dt_declaration d;

                memset(&d, 0, sizeof(d));
                strcpy(d.name, "v0");
                d.n_dims = 1;
                d.shape[0] = 2;
                strcpy(d.optimizer, "sgd");
                d.n_params = 1;
                strcpy(d.params[0].name, "lr");
                strcpy(d.init, "zeros");
                dt_declaration_encode(&body, &d);
            }
            n = body.len;
            body.data[i] = (unsigned char)(body.data[i] + v);
            frame = (struct dt_span){body.data, body.len};
            cluster_send(f.c, 0, PEER_LOCAL, &f.w.routes[0], &header, &frame, 1);
            cluster_settle(f.c);
            dt_buffer_deinit(&body);
            drop_answers(f.c);
        }
    }
    still_serves(&f);
    cluster_destroy(f.c);
}
