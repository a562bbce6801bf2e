/*
 * bench_many.c - what do connected workers cost that have nothing to say?
 *
 * --active N workers (100) push small gradients, a few at a time on each connection, each with a CLOCK as the
 * library sends it, or push and pull: with nobody else; with --workers N (1 000) connected, of whom the others
 * are silent; and where those send the library's heartbeats, on each connection four times in the default lease.
 * The first case has a psd and a job of its own. Cases take turns of a tenth of --seconds, so that all see the
 * same machine ("to alone" is a rate over the first one's, "psd us/push" psd's processor time). All workers are
 * in this process and thread, which pays for them, too; only active connections are polled. libzmq's own
 * heartbeats come each 5 s: to have them in all turns takes --seconds 5 or more. Checked: each worker's values
 * after all pushes, exactly.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "proto/base/clock.h"
#include "proto/base/descriptors.h"
#include "proto/wire/member.h"
#include "swarm.h"

enum { WORKERS = 1000, ACTIVE = 100, IN_FLIGHT = 4, ELEMENTS = 1024, TURNS = 10 };
#define BEAT_SECONDS 2.5 /* a fourth of the default lease */
#define POLL_MS 10
#define RATE 0x1p-10f
#define GRADIENT 0x1p-4f

struct load { /* one case: a psd and its workers */
    struct bench_psd psd;
    struct swarm swarm;
    uint32_t stride; /* every stride-th worker is active */
    enum dt_op op;
    uint64_t *n_sent;           /* owned; pushes, by worker */
    uint64_t *n_done;           /* owned; pushes that were answered, by shard */
    struct dt_poll_item *items; /* owned; the connections of the active workers */
    uint32_t n_items;
    bool beats;         /* the idle ones send heartbeats: */
    uint32_t next_idle; /* the worker whose next one is due, */
    double next_beat;   /* and when */
    float gradient[ELEMENTS];
};

struct sum { /* of a case's turns */
    double pushes, seconds, cpu;
};

static bool
is_active(const struct load *l, uint32_t worker)
{
    return worker % l->stride == 0;
}

static void *
allocate(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);

    if (!p)
        bench_fail("short of memory");
    return p;
}

static void
load_init(struct load *l, uint32_t n_workers, uint32_t n_active)
{
    uint32_t i, k;

    *l = (struct load){.stride = n_workers / n_active};
    bench_psd_start(&l->psd, true, 0);
    swarm_open(&l->swarm, l->psd.endpoint, n_workers, ELEMENTS, RATE);
    l->n_sent = allocate(n_workers, sizeof(*l->n_sent));
    l->n_done = allocate(l->swarm.n_shards, sizeof(*l->n_done));
    l->items = allocate((size_t)n_active * l->swarm.n_shards, sizeof(*l->items));
    for (i = 0; i < n_workers; i += l->stride) {
        for (k = 0; k < l->swarm.n_shards; k++)
            l->items[l->n_items++] =
                (struct dt_poll_item){.dealer = l->swarm.workers[i].lanes[k].dealer, .fd = -1};
    }
    for (i = 0; i < ELEMENTS; i++)
        l->gradient[i] = GRADIENT;
}

static void
load_deinit(struct load *l)
{
    swarm_close(&l->swarm);
    bench_psd_stop(&l->psd);
    free(l->n_sent);
    free(l->n_done);
    free(l->items);
}

/* Shard 0 is told the worker's step, too. */
static void
push(struct load *l, uint32_t worker, uint32_t shard)
{
    struct swarm *s = &l->swarm;
    struct swarm_lane *lane = &s->workers[worker].lanes[shard];
    struct dt_data m = {
        .weight = 1, .count = 1, .n_items = 1, .items = {{.variable = swarm_variable(shard)}}};

    m.counter = ++l->n_sent[worker];
    dt_data_encode(&s->header, l->op, ++s->last_request, lane->session, &m);
    swarm_send(s, lane, l->gradient, sizeof(l->gradient));
    if (shard > 0)
        return;
    dt_clock_encode(&s->header, ++s->last_request, lane->session, m.counter, 0);
    swarm_send(s, lane, NULL, 0);
}

static void
check_answer(struct load *l, uint32_t shard, const struct dt_message *m, struct dt_head *head)
{
    struct dt_data_reply r;

    if (head->op == (DT_OP_CLOCK | DT_REPLY_BIT))
        return;
    if (head->op != ((unsigned)l->op | DT_REPLY_BIT) || dt_data_reply_decode(head, &r) != DT_OK ||
        r.n_items != 1 || r.items[0].fate != DT_FATE_APPLIED)
        bench_fail("a push was not applied");
    if (l->op == DT_OP_PUSHPULL && (m->n_frames != 1 || m->frames[0].bytes != sizeof(l->gradient)))
        bench_fail("a push_pull has no values");
    l->n_done[shard]++;
}

/* What has come on a connection, and as many pushes as it may have more. */
static bool
serve_lane(struct load *l, uint32_t worker, uint32_t shard)
{
    struct swarm_lane *lane = &l->swarm.workers[worker].lanes[shard];
    uint32_t messages = shard == 0 ? 2 : 1; /* of a push */
    struct dt_message m;
    struct dt_head head;
    bool came = false;

    while (swarm_receive(lane, &m, &head)) {
        check_answer(l, shard, &m, &head);
        dt_message_deinit(&m);
        came = true;
    }
    while (lane->n_unanswered + messages <= IN_FLIGHT * messages)
        push(l, worker, shard);
    return came;
}

/* One that has not been answered is not repeated. */
static void
send_heartbeat(struct swarm *s, struct swarm_lane *lane)
{
    struct dt_message m;
    struct dt_head head;

    while (swarm_receive(lane, &m, &head))
        dt_message_deinit(&m);
    if (lane->n_unanswered > 0)
        return;
    dt_heartbeat_encode(&s->header, ++s->last_request, lane->session);
    swarm_send(s, lane, NULL, 0);
}

/* The idle ones one after the other, evenly in time. */
static void
beat(struct load *l, double now)
{
    struct swarm *s = &l->swarm;
    uint32_t k;

    while (l->beats && l->next_beat <= now) {
        for (k = 0; k < s->n_shards && !is_active(l, l->next_idle); k++)
            send_heartbeat(s, &s->workers[l->next_idle].lanes[k]);
        l->next_idle = (l->next_idle + 1) % s->n_workers;
        l->next_beat += BEAT_SECONDS / s->n_workers;
    }
}

static bool
serve(struct load *l)
{
    bool came = false;
    uint32_t i, k;

    for (i = 0; i < l->swarm.n_workers; i += l->stride) {
        for (k = 0; k < l->swarm.n_shards; k++)
            came |= serve_lane(l, i, k);
    }
    beat(l, dt_now_seconds());
    return came;
}

static void
drain(struct load *l)
{
    struct swarm *s = &l->swarm;
    struct dt_message m;
    struct dt_head head;
    uint32_t i, k;

    for (i = 0; i < s->n_workers; i++) {
        for (k = 0; k < s->n_shards; k++) {
            while (s->workers[i].lanes[k].n_unanswered > 0) {
                swarm_await(&s->workers[i].lanes[k], &m, &head);
                if (is_active(l, i))
                    check_answer(l, k, &m, &head);
                dt_message_deinit(&m);
            }
        }
    }
}

static uint64_t
n_pushes(const struct load *l)
{
    uint64_t n = 0;
    uint32_t k;

    for (k = 0; k < l->swarm.n_shards; k++)
        n += l->n_done[k];
    return n;
}

/* Its turn: pushes of `op` for a time, and their answers. */
static void
take_turn(struct load *l, enum dt_op op, bool beats, double seconds, struct sum *sum)
{
    uint64_t before = n_pushes(l);
    double cpu = bench_psd_cpu_seconds(&l->psd), start = dt_now_seconds();

    l->op = op;
    l->beats = beats;
    l->next_beat = start;
    while (dt_now_seconds() < start + seconds) {
        if (!serve(l))
            dt_poll(l->items, l->n_items, POLL_MS);
    }
    drain(l);
    sum->seconds += dt_now_seconds() - start;
    sum->cpu += bench_psd_cpu_seconds(&l->psd) - cpu;
    sum->pushes += (double)(n_pushes(l) - before);
}

/* Every update is -RATE * GRADIENT, a power of two: exact up to 2^24 of them. */
static void
check_values(const struct load *l, uint32_t shard, const struct dt_message *m)
{
    uint64_t n = l->n_done[shard];
    float expected = -RATE * GRADIENT * (float)n, x;
    uint32_t i;

    if (m->n_frames != 1 || m->frames[0].bytes != sizeof(l->gradient))
        bench_fail("a pull has no values");
    for (i = 0; n < 1 << 24 && i < ELEMENTS; i++) {
        memcpy(&x, m->frames[0].p + i * sizeof(x), sizeof(x));
        if (x != expected)
            bench_fail("element %u is %g after %llu pushes, not %g", i, (double)x,
                       (unsigned long long)n, (double)expected);
    }
}

static void
check(struct load *l)
{
    struct swarm *s = &l->swarm;
    uint32_t i, k;

    for (i = 0; i < s->n_workers; i++) {
        for (k = 0; k < s->n_shards; k++) {
            struct swarm_lane *lane = &s->workers[i].lanes[k];
            struct dt_data pull = {
                .n_items = 1, .items = {{.variable = swarm_variable(k), .version = DT_NO_VERSION}}};
            struct dt_message m;
            struct dt_head head;

            dt_data_encode(&s->header, DT_OP_PULL, ++s->last_request, lane->session, &pull);
            swarm_send(s, lane, NULL, 0);
            swarm_await(lane, &m, &head);
            check_values(l, k, &m);
            dt_message_deinit(&m);
        }
    }
}

static void
add_row(struct bench *b, const struct load *l, const char *idle, const struct sum *sum,
        const struct sum *alone)
{
    double rate = sum->pushes / sum->seconds;

    bench_row(b, json_pack("{s:s, s:i, s:i, s:s, s:i, s:f, s:f, s:f, s:f}", "op",
                           l->op == DT_OP_PUSH ? "push" : "push_pull", "connected",
                           (int)l->swarm.n_workers, "active", (int)(l->swarm.n_workers / l->stride),
                           "idle", idle, "shards", (int)l->swarm.n_shards, "pushes/s", rate,
                           "to alone", rate * alone->seconds / alone->pushes, "psd us/push",
                           1e6 * sum->cpu / sum->pushes, "psd MiB", bench_psd_peak_mib(&l->psd)));
}

static void
run_op(struct bench *b, struct load *alone, struct load *crowd, enum dt_op op)
{
    struct sum sums[4];
    double seconds = b->seconds / TURNS;
    unsigned i;

    memset(sums, 0, sizeof(sums));
    take_turn(alone, op, false, seconds, &sums[3]); /* pages, connections */
    take_turn(crowd, op, true, seconds, &sums[3]);
    for (i = 0; i < TURNS; i++) {
        take_turn(alone, op, false, seconds, &sums[0]);
        take_turn(crowd, op, false, seconds, &sums[1]);
        take_turn(crowd, op, true, seconds, &sums[2]);
    }
    check(alone);
    check(crowd);
    add_row(b, alone, "none", &sums[0], &sums[0]);
    add_row(b, crowd, "silent", &sums[1], &sums[0]);
    add_row(b, crowd, "heartbeats", &sums[2], &sums[0]);
}

int
main(int argc, char **argv)
{
    static struct load alone, crowd;
    uint32_t n_workers, n_active;
    struct bench b;

    bench_init(&b, BENCH_SECONDS | BENCH_WORKERS | BENCH_ACTIVE, argc, argv);
    n_workers = b.workers ? b.workers : WORKERS;
    n_active = b.active ? b.active : ACTIVE;
    if (n_workers % n_active || n_workers > DT_MAX_RANKS)
        bench_refuse("--workers is a multiple of --active and at most %d", DT_MAX_RANKS);
    dt_descriptors_raise();
    load_init(&alone, n_active, n_active);
    load_init(&crowd, n_workers, n_active);
    run_op(&b, &alone, &crowd, DT_OP_PUSH);
    run_op(&b, &alone, &crowd, DT_OP_PUSHPULL);
    load_deinit(&alone);
    load_deinit(&crowd);
    bench_finish(&b);
    return 0;
}
