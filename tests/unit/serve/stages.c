/*
 * stages.c - where a shard's time goes, with a clock of the test's: exact nanoseconds through the real dispatch.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cluster.h"

TestSuite(stages, .timeout = 80);

/* Reading k is 2^k - 1: the span from there to the next one is 2^k, so a sum tells which spans it is made of. */
static unsigned n_readings;

static uint64_t
doubling(void)
{
    return (1ull << n_readings++) - 1;
}

static uint64_t set_ns;

static uint64_t
by_hand(void)
{
    return set_ns;
}

static struct cluster *
start(stage_clock_fn *clock, uint32_t n_shards)
{
    struct serve_config config = cluster_config(n_shards);

    config.stage_clock = clock;
    config.stage_sample = 1;
    n_readings = 0;
    return cluster_create_with(&config);
}

static void
start_job(struct cluster *c, struct worker_at *w, uint32_t rank, uint32_t workers)
{
    struct dt_job_params p;
    uint8_t homes[1];

    dt_job_params_default(&p);
    p.workers = workers;
    worker_at_init(w, rank);
    cluster_start_job(c, w, "job", &p, 1, 4, 1, 0, homes);
}

static uint64_t
send(struct cluster *c, struct worker_at *w, enum dt_op op, uint64_t version)
{
    static const float g[4] = {1, 2, 3, 4};
    const float *frames[1] = {g};
    const uint32_t n = 4;
    struct dt_data d = {.n_items = 1};

    d.items[0].version = version;
    d.items[0].want = version;
    if (op == DT_OP_PULL)
        return worker_data(c, w, 0, op, &d, NULL, NULL);
    d.counter = ++w->counter;
    d.weight = 10;
    d.count = 1;
    d.items[0].want = version + 1;
    return worker_data(c, w, 0, op, &d, frames, &n);
}

static enum dt_status
status_of(struct cluster *c, uint64_t request)
{
    struct answer *a = cluster_take(c, request);
    enum dt_status status = a ? a->head.status : DT_E_TIMEOUT;

    answer_free(a);
    return status;
}

/* A turn as the daemon takes it, up to its message: readings 1, 2 and 3. */
static void
begin_turn(struct stages *s)
{
    stages_turn(s, STAGE_IDLE);
    stages_turn(s, STAGE_RECEIVE);
    stages_message(s);
}

static void
end_turn(struct stages *s)
{
    stages_enter(s, STAGE_RECEIVE);
    stages_turn(s, STAGE_OTHER);
}

static void
expect_ns(const uint64_t got[N_STAGES], const uint64_t want[N_STAGES])
{
    unsigned i;

    for (i = 0; i < N_STAGES; i++)
        cr_assert_eq(got[i], want[i], "stage %u has %llu ns, not %llu", i,
                     (unsigned long long)got[i], (unsigned long long)want[i]);
}

Test(stages, a_push_is_received_decoded_applied_answered)
{
    static const uint64_t turn[N_STAGES] = {
        [STAGE_OTHER] = 1 << 0, [STAGE_IDLE] = 1 << 1, [STAGE_RECEIVE] = (1 << 8) - (1 << 2)};
    static const uint64_t sample[N_STAGES] = {[STAGE_RECEIVE] = (1 << 3) + (1 << 7),
                                              [STAGE_DECODE] = 1 << 4,
                                              [STAGE_APPLY] = 1 << 5,
                                              [STAGE_REPLY] = 1 << 6};
    struct cluster *c = start(doubling, 1);
    struct stages *s = shard_stages(c->shards[0]);
    struct stage_totals before;
    struct worker_at w;
    double ns[N_STAGES], all = 0;
    unsigned i;

    start_job(c, &w, 0, 1);
    before = s->totals;
    begin_turn(s);
    cr_assert_eq(status_of(c, send(c, &w, DT_OP_PUSH, 0)), DT_OK);
    end_turn(s);
    expect_ns(s->totals.turn_ns, turn);
    expect_ns(s->totals.sample_ns, sample);
    stages_spread(&s->totals, ns);
    for (i = 0; i < N_STAGES; i++)
        all += ns[i];
    cr_assert_float_eq(all, (1 << 8) - 1, 1e-6, "all the time since the start");
    cr_assert_float_eq(ns[STAGE_APPLY], 252.0 * 32 / 248, 1e-6);
    cr_assert_eq(s->totals.n_received - before.n_received, 1);
    cr_assert_gt(s->totals.received_bytes - before.received_bytes, 16, "header and payload");
    cr_assert_lt(s->totals.received_bytes - before.received_bytes, 16 + 128);
    cluster_destroy(c);
}

Test(stages, a_pull_and_a_control_request)
{
    static const uint64_t sample[N_STAGES] = {[STAGE_RECEIVE] =
                                                  (1 << 3) + (1 << 6) + (1 << 9) + (1 << 12),
                                              [STAGE_DECODE] = (1 << 4) + (1 << 10),
                                              [STAGE_REPLY] = 1 << 5,
                                              [STAGE_OTHER] = 1 << 11};
    struct cluster *c = start(doubling, 1);
    struct stages *s = shard_stages(c->shards[0]);
    struct dt_buffer header = {0};
    struct worker_at w;

    start_job(c, &w, 0, 1);
    begin_turn(s);
    cr_assert_eq(status_of(c, send(c, &w, DT_OP_PULL, 0)), DT_OK);
    end_turn(s); /* reading 7 */
    stages_turn(s, STAGE_RECEIVE);
    stages_message(s); /* reading 9 */
    dt_heartbeat_encode(&header, ++c->next_request, w.sessions[0]);
    cluster_send(c, 0, PEER_LOCAL, &w.routes[0], &header, NULL, 0);
    end_turn(s);
    expect_ns(s->totals.sample_ns, sample);
    cluster_destroy(c);
}

Test(stages, a_parked_request_waits_until_it_is_woken)
{
    struct cluster *c = start(doubling, 1);
    const struct stage_totals *t = &shard_stages(c->shards[0])->totals;
    struct worker_at a, b;
    uint64_t id;

    start_job(c, &a, 0, 2);
    start_job(c, &b, 1, 2);
    id = send(c, &a, DT_OP_PUSHPULL, 0); /* reading 1 */
    cr_assert_eq(status_of(c, id), DT_PARKED);
    cr_assert_eq(t->n_parked, 0, "it still waits");
    cr_assert_eq(status_of(c, send(c, &b, DT_OP_PUSHPULL, 0)), DT_OK); /* reading 2 */
    cr_assert_eq(status_of(c, id), DT_OK);
    cr_assert_eq(t->n_parked, 1, "who closes the round does not wait");
    cr_assert_eq(t->parked_ns, 1 << 1);
    cluster_destroy(c);
}

Test(stages, one_message_in_sixteen_is_divided_and_none_is_always_met)
{
    struct stages s;
    unsigned i, n[2] = {0, 0};

    stages_init(&s, by_hand, STAGES_SAMPLE);
    stages_turn(&s, STAGE_RECEIVE);
    for (i = 0; i < 32000; i++) {
        stages_message(&s);
        cr_assert(i > 0 || s.divided, "the first: a split is known from then on");
        n[i % 2] += s.divided;
    }
    cr_assert(n[0] > 900 && n[0] < 1100 && n[1] > 900 && n[1] < 1100, "%u and %u of 32000", n[0],
              n[1]);
}

static void
wait_until(struct stages *s, uint64_t seconds)
{
    set_ns = seconds * 1000000000u;
    stages_turn(s, STAGE_OTHER);
    stages_tick(s);
}

Test(stages, recent_are_the_last_ten_to_twenty_seconds)
{
    static const uint64_t at[][2] = {{4, 4}, {11, 11}, {19, 19}, {22, 11}, {31, 20}, {32, 10}};
    struct stage_totals recent;
    struct stages s;
    unsigned i;

    set_ns = 0;
    stages_init(&s, by_hand, 1);
    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        wait_until(&s, at[i][0]);
        stages_recent(&s, &recent);
        cr_assert_eq(recent.turn_ns[STAGE_OTHER], at[i][1] * 1000000000u, "at %u s: %llu ns",
                     (unsigned)at[i][0], (unsigned long long)recent.turn_ns[STAGE_OTHER]);
    }
}

Test(stages, without_a_clock_nothing_is_counted)
{
    static const uint64_t none[N_STAGES];
    struct cluster *c = start(NULL, 1);
    struct stages *s = shard_stages(c->shards[0]);
    struct worker_at w;

    start_job(c, &w, 0, 1);
    begin_turn(s);
    cr_assert_eq(status_of(c, send(c, &w, DT_OP_PUSHPULL, 0)), DT_OK);
    end_turn(s);
    expect_ns(s->totals.turn_ns, none);
    expect_ns(s->totals.sample_ns, none);
    cluster_destroy(c);
}

/* Reads {"shard": k, "total": {...}, "recent": {...}} and returns k. */
static uint64_t
read_shard(struct dt_reader *r)
{
    uint32_t k, n = dt_read_map(r, 3);
    uint64_t shard = UINT64_MAX;
    char key[16];

    cr_assert_eq(n, 3);
    for (k = 0; k < n; k++) {
        dt_read_cstr(r, key, sizeof(key));
        if (!strcmp(key, "shard"))
            shard = dt_read_u64(r);
        else
            dt_read_skip(r);
    }
    return shard;
}

Test(stages, status_tells_of_every_shard)
{
    struct cluster *c = start(by_hand, 3);
    uint32_t i, n, seen = 0;
    struct answer *a;
    struct dt_reader r;
    char key[16] = "";

    a = cluster_status(c); /* without any job, too */
    dt_reader_init(&r, a->body.data, a->body.len);
    for (i = dt_read_map(&r, 16); i-- > 0 && strcmp(key, "stages") != 0 && !r.failed;) {
        dt_read_cstr(&r, key, sizeof(key));
        if (strcmp(key, "stages") != 0)
            dt_read_skip(&r);
    }
    n = dt_read_array(&r, 3);
    for (i = 0; i < n; i++)
        seen |= 1u << read_shard(&r);
    cr_assert(!r.failed);
    cr_assert(n == 3 && seen == 7, "%u shards, %x", n, seen);
    answer_free(a);
    cluster_destroy(c);
}
