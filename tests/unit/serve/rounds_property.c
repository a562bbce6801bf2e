/*
 * rounds_property.c - rounds, membership and fate against a simple sequential model, thousands of
 * random schedules over the real dispatch (no sockets). The seed is printed on failure.
 *
 * The model knows nothing of intervals or rows: it keeps for each slice a matrix "rank counts at
 * step" and a matrix "rank's push is in", and closes rounds by counting.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "proto/base/log.h"

#define RANKS 6
#define STEPS 256
#define VARS 4
#define N 3

struct model_slice {
    uint64_t version;
    bool counts[RANKS][STEPS];
    bool in[RANKS][STEPS];
    bool left[RANKS];
    double sum[N];
    double weight, batches;
    double w[N];
    uint32_t n_pushed;
};

struct model {
    uint32_t workers, aggregate, reduce;
    double lr;
    struct model_slice slices[VARS];
};

struct player {
    struct worker_at at;
    bool here, member, left;
    uint64_t first;
    uint64_t held[VARS];    /* versions of the last pull */
    struct dt_data last[8]; /* last push a shard, for duplicates */
    uint8_t last_fates[8][VARS];
    bool may_resend[8];
};

struct play {
    struct cluster *c;
    struct model m;
    struct player p[RANKS];
    uint8_t homes[VARS];
    uint64_t rng;
    uint64_t seed;
    struct dt_job_params params;
};

static uint32_t
rnd(struct play *g, uint32_t n)
{
    g->rng ^= g->rng << 13;
    g->rng ^= g->rng >> 7;
    g->rng ^= g->rng << 17;
    return (uint32_t)((g->rng >> 11) % n);
}

/* ---- the model ---- */

static void
model_close(struct model *m, struct model_slice *s)
{
    for (;;) {
        uint32_t r, members = 0, done = 0, quorum;
        uint64_t t = s->version, later;
        double divisor;
        int i;

        cr_assert_lt(t, STEPS - 1);
        for (r = 0; r < RANKS; r++) {
            members += s->counts[r][t];
            done += s->counts[r][t] && (s->in[r][t] || s->left[r]);
        }
        if (members == 0) {
            bool awaited = false;

            for (later = t + 1; later < STEPS; later++) {
                for (r = 0; r < RANKS; r++)
                    awaited = awaited || s->counts[r][later];
            }
            if (!awaited)
                return;
            memset(s->sum, 0, sizeof(s->sum));
        } else {
            quorum = m->aggregate && m->aggregate < members ? m->aggregate : members;
            if (done < quorum || (s->weight == 0 && done < members))
                return;
            divisor = m->reduce == DT_REDUCE_MEAN ? s->weight : s->batches;
            for (i = 0; i < N && divisor > 0; i++)
                s->w[i] -= m->lr * s->sum[i] / (m->reduce == DT_REDUCE_SUM ? 1 : divisor);
        }
        s->version++;
        memset(s->sum, 0, sizeof(s->sum));
        s->weight = s->batches = 0;
    }
}

static void
model_settle(struct model *m)
{
    int v;

    for (v = 0; v < VARS; v++)
        model_close(m, &m->slices[v]);
}

static enum dt_fate
model_push(struct model *m, uint32_t var, uint32_t rank, uint64_t version, uint32_t weight,
           uint32_t count, const float *g)
{
    struct model_slice *s = &m->slices[var];
    double f = m->reduce == DT_REDUCE_MEAN ? weight : count;
    int i;

    if (version < s->version)
        return DT_FATE_STALE;
    if (version > s->version)
        return DT_FATE_AHEAD;
    if (!s->counts[rank][version] || s->left[rank])
        return DT_FATE_REFUSED;
    if (s->in[rank][version])
        return DT_FATE_DUPLICATE;
    s->in[rank][version] = true;
    for (i = 0; i < N && g; i++)
        s->sum[i] += f * g[i];
    s->weight += weight;
    s->batches += count;
    model_close(m, s);
    return DT_FATE_ACCUMULATED;
}

static void
model_strike(struct model *m, uint32_t rank)
{
    int v;
    uint64_t t;

    for (v = 0; v < VARS; v++) {
        for (t = m->slices[v].version; t < STEPS; t++)
            m->slices[v].counts[rank][t] = false;
    }
    model_settle(m);
}

static void
model_join(struct model *m, uint32_t rank, uint64_t first)
{
    int v;
    uint64_t t;

    for (v = 0; v < VARS; v++) {
        m->slices[v].left[rank] = false;
        for (t = m->slices[v].version; t < STEPS; t++)
            m->slices[v].counts[rank][t] = t >= first;
    }
    model_settle(m);
}

static void
model_leave(struct model *m, uint32_t rank, uint64_t last)
{
    int v;
    uint64_t t;

    for (v = 0; v < VARS; v++) {
        m->slices[v].left[rank] = true;
        for (t = 0; t < STEPS; t++) {
            if (last == UINT64_MAX || t > last)
                m->slices[v].counts[rank][t] = false;
        }
    }
    model_settle(m);
}

/* ---- comparison ---- */

static void
compare_values(struct play *g, uint32_t v, uint64_t version, const float *x)
{
    int i;

    cr_assert_eq(version, g->m.slices[v].version,
                 "seed %llu: slice %u has version %llu, model %llu", (unsigned long long)g->seed, v,
                 (unsigned long long)version, (unsigned long long)g->m.slices[v].version);
    for (i = 0; i < N; i++)
        cr_assert(fabs(x[i] - g->m.slices[v].w[i]) <= 1e-3 * (1 + fabs(g->m.slices[v].w[i])),
                  "seed %llu: slice %u element %d is %g, model %g", (unsigned long long)g->seed, v,
                  i, (double)x[i], g->m.slices[v].w[i]);
}

/* Pull everything at once with a reader's eyes: player k, want 0. */
static void
check_all(struct play *g, struct player *p)
{
    uint32_t v;

    for (v = 0; v < VARS; v++) {
        struct dt_data d = {.n_items = 1};
        struct dt_data_reply reply;
        struct answer *a;

        d.items[0].variable = v;
        d.items[0].version = DT_NO_VERSION;
        a = cluster_take(g->c, worker_data(g->c, &p->at, g->homes[v], DT_OP_PULL, &d, NULL, NULL));
        cr_assert_not_null(a, "seed %llu", (unsigned long long)g->seed);
        cr_assert_eq(a->head.status, DT_OK, "seed %llu: %s", (unsigned long long)g->seed,
                     a->head.text);
        cr_assert_eq(dt_data_reply_decode(&a->head, &reply), DT_OK);
        compare_values(g, v, reply.items[0].version, a->frames[0]);
        answer_free(a);
    }
}

/* ---- moves ---- */

static uint32_t
items_of(const struct play *g, uint32_t shard, uint32_t *vars)
{
    uint32_t v, n = 0;

    for (v = 0; v < VARS; v++) {
        if (g->homes[v] == shard)
            vars[n++] = v;
    }
    return n;
}

/* Fates that psd stores with the push: a repeated message gets the same again. */
static bool
is_stored(enum dt_fate fate)
{
    return fate == DT_FATE_ACCUMULATED || fate == DT_FATE_STALE || fate == DT_FATE_DUPLICATE;
}

static void
push_shard(struct play *g, struct player *p, uint32_t shard, uint64_t counter, int64_t shift,
           uint32_t weight, uint32_t count)
{
    struct dt_data d = {.counter = counter, .weight = weight, .count = count};
    float gradient[VARS][N];
    const float *frames[VARS];
    enum dt_fate fates[VARS];
    uint32_t vars[VARS], sizes[VARS], i, k;
    struct dt_data_reply reply;
    struct answer *a;

    d.n_items = items_of(g, shard, vars);
    if (!d.n_items)
        return;
    for (i = 0; i < d.n_items; i++) {
        int64_t version = (int64_t)p->held[vars[i]] + shift;

        d.items[i].variable = vars[i];
        d.items[i].version = version < 0 ? 0 : (uint64_t)version;
        for (k = 0; k < N; k++)
            gradient[i][k] = (float)rnd(g, 9) - 4;
        frames[i] = gradient[i];
        sizes[i] = N;
        fates[i] = model_push(&g->m, vars[i], p->at.rank, d.items[i].version, weight, count,
                              weight ? gradient[i] : NULL);
    }
    a = cluster_take(
        g->c, worker_data(g->c, &p->at, shard, DT_OP_PUSH, &d, weight ? frames : NULL, sizes));
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK, "seed %llu: %s", (unsigned long long)g->seed, a->head.text);
    cr_assert_eq(dt_data_reply_decode(&a->head, &reply), DT_OK);
    for (i = 0; i < d.n_items; i++)
        cr_assert_eq(reply.items[i].fate, fates[i],
                     "seed %llu: rank %u slice %u: fate %s, model %s", (unsigned long long)g->seed,
                     p->at.rank, vars[i], dt_fate_name(reply.items[i].fate),
                     dt_fate_name(fates[i]));
    answer_free(a);
    p->last[shard] = d;
    p->may_resend[shard] = true;
    for (i = 0; i < d.n_items; i++) {
        p->last_fates[shard][i] = (uint8_t)fates[i];
        p->may_resend[shard] = p->may_resend[shard] && is_stored(fates[i]);
    }
}

/* The newest push once more: the stored fate, nothing changes. */
static void
resend(struct play *g, struct player *p, uint32_t shard)
{
    struct dt_data *d = &p->last[shard];
    float zeros[N] = {1, 1, 1};
    const float *frames[VARS] = {zeros, zeros, zeros, zeros};
    uint32_t sizes[VARS] = {N, N, N, N}, i;
    struct dt_data_reply reply;
    struct answer *a;

    if (!p->may_resend[shard])
        return;
    a = cluster_take(
        g->c, worker_data(g->c, &p->at, shard, DT_OP_PUSH, d, d->weight ? frames : NULL, sizes));
    cr_assert_not_null(a);
    cr_assert_eq(dt_data_reply_decode(&a->head, &reply), DT_OK);
    for (i = 0; i < d->n_items; i++)
        cr_assert_eq(reply.items[i].fate, p->last_fates[shard][i],
                     "seed %llu: a repeated push has another fate", (unsigned long long)g->seed);
    answer_free(a);
}

static void
pull(struct play *g, struct player *p)
{
    uint32_t v;

    for (v = 0; v < VARS; v++)
        p->held[v] = g->m.slices[v].version; /* check_all has shown that they are equal */
    check_all(g, p);
}

static void
push(struct play *g, struct player *p)
{
    uint32_t s, weight = rnd(g, 4) ? 1 + rnd(g, 5) : 0, count = weight ? 1 + rnd(g, 2) : 0;
    int64_t shift = rnd(g, 10) ? 0 : (int64_t)rnd(g, 3) - 1;
    uint64_t counter = ++p->at.counter;

    for (s = 0; s < g->c->n_shards; s++)
        push_shard(g, p, s, counter, shift, weight, count);
}

static void
come(struct play *g, struct player *p)
{
    struct dt_hello_reply *reply;
    uint32_t s;

    worker_at_init(&p->at, (uint32_t)(p - g->p));
    memset(p->may_resend, 0, sizeof(p->may_resend));
    reply = calloc(1, sizeof(*reply));
    for (s = 0; s < g->c->n_shards; s++) {
        enum dt_status status = worker_hello(g->c, &p->at, s, "job", &g->params, false, reply);

        if (status == DT_R_JOB_COMPLETE) {
            free(reply);
            return;
        }
        cr_assert_eq(status, DT_OK, "seed %llu: %s", (unsigned long long)g->seed,
                     dt_status_text(status));
    }
    free(reply);
    p->here = true;
    p->left = false;
    p->member = !p->at.must_join;
    pull(g, p);
    if (p->at.must_join && rnd(g, 8)) {
        cr_assert_eq(worker_step_op(g->c, &p->at, DT_OP_JOIN, 0, &p->first), DT_OK);
        model_join(&g->m, p->at.rank, p->first);
        p->member = true;
        pull(g, p);
    }
}

static void
leave(struct play *g, struct player *p)
{
    uint64_t last = p->held[0], v, top = 0;

    for (v = 0; v < VARS; v++)
        top = g->m.slices[v].version > top ? g->m.slices[v].version : top;
    if (rnd(g, 6) == 0)
        last = UINT64_MAX;
    cr_assert_eq(worker_step_op(g->c, &p->at, DT_OP_LEAVE, last, NULL), DT_OK);
    model_leave(&g->m, p->at.rank, last != UINT64_MAX && last > top ? top : last);
    p->here = false;
    p->left = true;
}

static void
lose(struct play *g, struct player *p)
{
    struct dt_kick kick = {.rank = p->at.rank};
    struct dt_route admin = {.len = 1, .id = {'a'}};
    struct dt_buffer header = {0};
    uint64_t id = ++g->c->next_request;

    strcpy(kick.job, "job");
    dt_kick_encode(&header, id, &kick);
    cluster_send(g->c, 0, PEER_ADMIN, &admin, &header, NULL, 0);
    cluster_settle(g->c);
    answer_free(cluster_take(g->c, id));
    model_strike(&g->m, p->at.rank);
    p->here = false;
}

static bool
someone_is_here(const struct play *g)
{
    int r;

    for (r = 0; r < RANKS; r++) {
        if (g->p[r].here)
            return true;
    }
    return false;
}

static bool
is_near_the_end(const struct play *g)
{
    int v;

    for (v = 0; v < VARS; v++) {
        if (g->m.slices[v].version > STEPS - 60)
            return true;
    }
    return false;
}

static void
move(struct play *g)
{
    struct player *p = &g->p[rnd(g, RANKS)];
    uint32_t what = rnd(g, 100);

    if (!p->here) {
        if (what < 12)
            come(g, p);
        return;
    }
    if (what < 45)
        push(g, p);
    else if (what < 90)
        pull(g, p);
    else if (what < 94)
        resend(g, p, rnd(g, g->c->n_shards));
    else if (what < 97)
        lose(g, p);
    else if (what < 99)
        leave(g, p);
}

static void
start(struct play *g)
{
    int r, v, t;

    memset(&g->m, 0, sizeof(g->m));
    dt_job_params_default(&g->params);
    g->m.workers = g->params.workers = 1 + rnd(g, 4);
    g->m.aggregate = g->params.aggregate = rnd(g, 2) ? rnd(g, g->m.workers + 1) : 0;
    g->m.reduce = g->params.reduce = rnd(g, 3);
    g->params.lease_ms = 3600000;
    g->m.lr = .01;
    for (v = 0; v < VARS; v++) {
        for (r = 0; r < (int)g->m.workers; r++) {
            for (t = 0; t < STEPS; t++)
                g->m.slices[v].counts[r][t] = true;
        }
        for (t = 0; t < N; t++)
            g->m.slices[v].w[t] = 1;
    }
    g->c = cluster_create(1 + rnd(g, 3));
    memset(g->p, 0, sizeof(g->p));
    worker_at_init(&g->p[0].at, 0);
    cluster_start_job(g->c, &g->p[0].at, "job", &g->params, VARS, N, .01f, 1, g->homes);
    g->p[0].here = g->p[0].member = true;
}

static void
play(uint64_t seed)
{
    struct play *g = calloc(1, sizeof(*g));
    int i;

    g->seed = seed;
    g->rng = seed * 0x9e3779b97f4a7c15ull + 1;
    start(g);
    for (i = 0; i < 300 && !is_near_the_end(g); i++) {
        move(g);
        if (someone_is_here(g)) {
            struct player *p = g->p;

            while (!p->here)
                p++;
            if (i % 16 == 0)
                check_all(g, p);
        }
    }
    cluster_destroy(g->c);
    free(g);
}

static void
play_range(uint64_t from, uint64_t to)
{
    uint64_t seed;

    dt_log_open("test", DT_LOG_ERR);
    if (getenv("PSD_SEED"))
        from = to = strtoull(getenv("PSD_SEED"), NULL, 10);
    for (seed = from; seed <= to; seed++)
        play(seed);
}

/* Four ranges, so that the runner uses the processors there are. */
TestSuite(rounds_property, .timeout = 280);

Test(rounds_property, follows_the_sequential_model_1)
{
    play_range(1, 500);
}

Test(rounds_property, follows_the_sequential_model_2)
{
    play_range(501, 1000);
}

Test(rounds_property, follows_the_sequential_model_3)
{
    play_range(1001, 1500);
}

Test(rounds_property, follows_the_sequential_model_4)
{
    play_range(1501, 2000);
}
