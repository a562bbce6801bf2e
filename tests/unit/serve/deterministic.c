/*
 * deterministic.c - deterministic jobs through the real dispatch: the sum of a round in rank order whatever the
 * order of arrival, and what psd refuses.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cluster.h"

TestSuite(deterministic, .timeout = 80);

#define M 4
#define N 3

/* Sums of these depend on their order. */
static const float gradients[M][N] = {
    {2e8f, 1.0f, 0.1f}, {-1e8f, 1e-8f, 0.2f}, {3.3f, -1.0f, 0.3f}, {1e-3f, 1e-9f, 1e7f}};
static const uint64_t weights[M] = {2, 4, 1, 8};

struct fixture {
    struct cluster *c;
    struct dt_job_params params;
    struct worker_at w[M];
    uint8_t homes[1];
};

static void
fill_params(struct dt_job_params *p)
{
    dt_job_params_default(p);
    p->workers = M;
    p->deterministic = 1;
    p->on_loss = DT_ON_LOSS_FAIL;
    p->lease_ms = 3600000;
    strcpy(p->kernel, "Here");
}

static void
start(struct fixture *f, bool deterministic)
{
    uint32_t i;

    memset(f, 0, sizeof(*f));
    f->c = cluster_create(2);
    fill_params(&f->params);
    f->params.deterministic = deterministic;
    for (i = 0; i < M; i++) {
        worker_at_init(&f->w[i], i);
        cluster_start_job(f->c, &f->w[i], "job", &f->params, 1, N, 1, 0, f->homes);
    }
}

/* weight 0: abstain */
static void
push(struct fixture *f, uint32_t rank, uint64_t step, uint64_t weight)
{
    struct worker_at *w = &f->w[rank];
    struct dt_data d = {
        .counter = ++w->counter, .weight = weight, .count = weight ? 1 : 0, .n_items = 1};
    const float *g = gradients[rank];
    struct dt_data_reply reply;
    uint32_t n = N;
    struct answer *a;

    d.items[0].version = step;
    a = cluster_take(f->c,
                     worker_data(f->c, w, f->homes[0], DT_OP_PUSH, &d, weight ? &g : NULL, &n));
    cr_assert_not_null(a, "held or not: the window is free");
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    cr_assert_eq(dt_data_reply_decode(&a->head, &reply), DT_OK);
    cr_assert_eq(reply.items[0].fate, DT_FATE_ACCUMULATED);
    answer_free(a);
}

static uint64_t
values(struct fixture *f, float out[N])
{
    struct dt_data d = {.n_items = 1};
    struct dt_data_reply reply;
    struct answer *a;

    d.items[0].version = DT_NO_VERSION;
    a = cluster_take(f->c, worker_data(f->c, &f->w[0], f->homes[0], DT_OP_PULL, &d, NULL, NULL));
    cr_assert_not_null(a);
    cr_assert_eq(dt_data_reply_decode(&a->head, &reply), DT_OK);
    memcpy(out, a->frames[0], N * sizeof(float));
    answer_free(a);
    return reply.items[0].version;
}

/* One process that sums in rank order; w = -mean. `skip`: abstains. */
static void
reference(uint32_t skip, float out[N])
{
    uint32_t i, r;

    for (i = 0; i < N; i++) {
        volatile float sum = 0, weight = 0;

        for (r = 0; r < M; r++) {
            volatile float term = (float)weights[r] * gradients[r][i];

            if (r == skip)
                continue;
            sum = weight > 0 ? sum + term : term;
            weight += (float)weights[r];
        }
        out[i] = 0 - sum / weight;
    }
}

/* The k-th order of M ranks. */
static void
permute(uint32_t k, uint32_t order[M])
{
    uint32_t left[M] = {0, 1, 2, 3}, i, n;

    for (i = 0; i < M; i++) {
        n = M - i;
        order[i] = left[k % n];
        memmove(&left[k % n], &left[k % n + 1], (n - k % n - 1) * sizeof(left[0]));
        k /= n;
    }
}

static uint32_t
count_equal(bool deterministic)
{
    float want[N], got[N];
    uint32_t k, i, order[M], n = 0;

    reference(M, want);
    for (k = 0; k < 24; k++) {
        struct fixture f;

        start(&f, deterministic);
        permute(k, order);
        for (i = 0; i < M; i++)
            push(&f, order[i], 0, weights[order[i]]);
        cr_assert_eq(values(&f, got), 1);
        n += !memcmp(want, got, sizeof(got));
        cluster_destroy(f.c);
    }
    return n;
}

Test(deterministic, every_order_of_arrival_gives_the_bits_of_rank_order)
{
    cr_assert_eq(count_equal(true), 24);
    cr_assert_lt(count_equal(false), 24, "these sums depend on their order");
}

Test(deterministic, who_abstains_or_leaves_holds_nobody)
{
    float want[N], got[N];
    struct fixture f;

    start(&f, true);
    push(&f, 3, 0, weights[3]);
    push(&f, 2, 0, weights[2]);
    push(&f, 1, 0, weights[1]);
    cr_assert_eq(values(&f, got), 0);
    push(&f, 0, 0, 0);
    cr_assert_eq(values(&f, got), 1);
    reference(0, want);
    cr_assert_eq(memcmp(want, got, sizeof(got)), 0);

    push(&f, 3, 1, weights[3]);
    push(&f, 2, 1, weights[2]);
    push(&f, 1, 1, weights[1]);
    cr_assert_eq(worker_step_op(f.c, &f.w[0], DT_OP_LEAVE, 0, NULL), DT_OK);
    cluster_settle(f.c);
    f.w[0] = f.w[1]; /* to pull by */
    cr_assert_eq(values(&f, got), 2);
    cluster_destroy(f.c);
}

Test(deterministic, a_round_of_abstentions_and_one_that_is_lost_leave_nothing)
{
    struct fixture f;
    float got[N];
    uint32_t i;

    start(&f, true);
    for (i = M; i-- > 0;)
        push(&f, i, 0, 0);
    cr_assert_eq(values(&f, got), 1);
    cr_assert_eq(got[0], 0);
    cr_assert_eq(worker_step_op(f.c, &f.w[0], DT_OP_JOIN, 9, NULL), DT_R_BAD_VALUE);
    push(&f, 3, 1, 1); /* held when the job goes: LeakSanitizer looks */
    push(&f, 2, 1, 1);
    cluster_destroy(f.c);
}

static enum dt_status
hello(struct cluster *c, uint32_t rank, const struct dt_job_params *p)
{
    struct dt_hello_reply reply;
    struct worker_at w;

    worker_at_init(&w, rank);
    return worker_hello(c, &w, 0, "other", p, false, &reply);
}

Test(deterministic, what_would_depend_on_time_or_machine_is_refused)
{
    struct cluster *c = cluster_create(1);
    struct dt_job_params p;

    fill_params(&p);
    p.consistency = DT_ASYNC;
    cr_assert_eq(hello(c, 0, &p), DT_R_BAD_VALUE);
    fill_params(&p);
    p.aggregate = M - 1;
    cr_assert_eq(hello(c, 0, &p), DT_R_BAD_VALUE);
    fill_params(&p);
    p.on_loss = DT_ON_LOSS_SHRINK;
    cr_assert_eq(hello(c, 0, &p), DT_R_BAD_VALUE);
    fill_params(&p);
    p.kernel[0] = '\0';
    cr_assert_eq(hello(c, 0, &p), DT_R_BAD_VALUE);
    fill_params(&p);
    cr_assert_eq(hello(c, 0, &p), DT_OK);
    strcpy(p.kernel, "There");
    cr_assert_eq(hello(c, 1, &p), DT_R_MISMATCH, "another kernel");
    fill_params(&p);
    cr_assert_eq(hello(c, M, &p), DT_R_MISMATCH, "a late rank");
    cr_assert_eq(hello(c, 1, &p), DT_OK);
    cr_assert_eq(hello(c, 1, &p), DT_R_RANK_TAKEN);
    cluster_destroy(c);
}

Test(deterministic, held_gradients_are_charged_at_declare)
{
    struct serve_config config = cluster_config(1);
    struct cluster *c;
    struct dt_declaration d = {.n_dims = 1, .shape = {DT_SLICE_ELEMENTS}};
    struct dt_job_params p;
    struct worker_at w;
    uint32_t k;

    config.memory_quota =
        4u << 20; /* values, sum and some rows of 1 MiB; not M - 1 gradients more */
    c = cluster_create_with(&config);
    strcpy(d.name, "v");
    strcpy(d.optimizer, "sgd");
    d.n_params = 1;
    strcpy(d.params[0].name, "lr");
    strcpy(d.init, "zeros");
    for (k = 0; k < 2; k++) {
        fill_params(&p);
        p.deterministic = k == 1;
        worker_at_init(&w, 0);
        worker_hello_all(c, &w, k ? "held" : "plain", &p);
        cr_assert_eq(worker_declare(c, &w, &d, 1), k ? DT_R_QUOTA : DT_OK);
    }
    cluster_destroy(c);
}
