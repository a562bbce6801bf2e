/*
 * racy.c - locking none through the real dispatch: a rank is served by one shard, all shards update the
 * same values.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cluster.h"

TestSuite(racy, .timeout = 80);

struct fixture {
    struct cluster *c;
    struct dt_job_params params;
    struct worker_at w[3]; /* ranks 0, 1, 4: of three shards they are served by 0, 1, 1 */
};

static const uint32_t ranks[3] = {0, 1, 4};
static const uint32_t served_by[3] = {0, 1, 1};

static void
start(struct fixture *f)
{
    uint8_t homes[2];
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->c = cluster_create(3);
    dt_job_params_default(&f->params);
    f->params.workers = 5;
    f->params.consistency = DT_ASYNC;
    f->params.locking = DT_LOCK_NONE;
    f->params.lease_ms = 3600000;
    for (i = 3; i-- > 0;) { /* rank 4 comes first: initial values through shard 1 */
        worker_at_init(&f->w[i], ranks[i]);
        cluster_start_job(f->c, &f->w[i], "job", &f->params, 2, 2, 1, 10, homes);
        cr_assert_eq(homes[0], served_by[i]);
        cr_assert_eq(homes[1], served_by[i]);
    }
}

/* Push g to variable 0 at `version`; the status, and what the reply says. */
static enum dt_status
push(struct fixture *f, unsigned i, uint32_t shard, uint64_t counter, uint64_t version,
     struct dt_data_reply *reply)
{
    static const float g[2] = {1, 3}, *frame = g;
    struct dt_data d = {.counter = counter, .weight = 1, .count = 1, .n_items = 1};
    struct answer *answer;
    enum dt_status status;
    uint32_t n = 2;

    d.items[0].version = version;
    answer = cluster_take(f->c, worker_data(f->c, &f->w[i], shard, DT_OP_PUSH, &d, &frame, &n));
    cr_assert_not_null(answer);
    status = answer->head.status;
    if (status == DT_OK)
        cr_assert_eq(dt_data_reply_decode(&answer->head, reply), DT_OK);
    answer_free(answer);
    return status;
}

static uint64_t
ask(struct fixture *f, unsigned i, uint64_t want)
{
    struct dt_data d = {.n_items = 1};

    d.items[0].version = DT_NO_VERSION;
    d.items[0].want = want;
    return worker_data(f->c, &f->w[i], served_by[i], DT_OP_PULL, &d, NULL, NULL);
}

static void
expect_pulled(struct fixture *f, uint64_t request, float x0, float x1, uint64_t version)
{
    struct answer *answer = cluster_take(f->c, request);
    struct dt_data_reply reply;

    cr_assert_not_null(answer);
    cr_assert_eq(answer->head.status, DT_OK, "%s", answer->head.text);
    cr_assert_eq(dt_data_reply_decode(&answer->head, &reply), DT_OK);
    cr_assert(reply.approximate);
    cr_assert_eq(reply.items[0].version, version);
    cr_assert_eq(answer->frames[0][0], x0);
    cr_assert_eq(answer->frames[0][1], x1);
    answer_free(answer);
}

Test(racy, all_shards_update_the_same_values)
{
    struct fixture f;
    struct dt_data_reply reply;

    start(&f);
    cr_assert_eq(push(&f, 0, 0, 1, 0, &reply), DT_OK);
    cr_assert_eq(reply.items[0].fate, DT_FATE_APPLIED);
    cr_assert_eq(reply.items[0].push_version, 1);
    cr_assert(reply.approximate);
    cr_assert_eq(push(&f, 1, 1, 1, 0, &reply), DT_OK);
    cr_assert_eq(reply.items[0].push_version, 2, "overtaken by rank 0, on another shard");
    cr_assert_eq(push(&f, 2, 1, 1, 0, &reply), DT_OK);
    expect_pulled(&f, ask(&f, 0, 0), 7, 1, 3);
    expect_pulled(&f, ask(&f, 2, 0), 7, 1, 3);
    cluster_destroy(f.c);
}

Test(racy, a_push_is_applied_once)
{
    struct fixture f;
    struct dt_data_reply reply;

    start(&f);
    cr_assert_eq(push(&f, 1, 1, 5, 0, &reply), DT_OK);
    cr_assert_eq(push(&f, 2, 1, 5, 0, &reply), DT_OK); /* another rank's counter is its own */
    cr_assert_eq(push(&f, 1, 1, 5, 0, &reply), DT_OK);
    cr_assert_eq(reply.items[0].fate, DT_FATE_APPLIED, "the stored fate");
    cr_assert_eq(reply.items[0].push_version, 1);
    expect_pulled(&f, ask(&f, 0, 0), 8, 4, 2);
    cluster_destroy(f.c);
}

Test(racy, a_rank_is_served_by_its_shard_alone)
{
    struct fixture f;
    struct dt_data_reply reply;

    start(&f);
    cr_assert_eq(push(&f, 1, 0, 1, 0, &reply), DT_R_NO_VARIABLE);
    cr_assert_eq(push(&f, 1, 2, 1, 0, &reply), DT_R_NO_VARIABLE);
    expect_pulled(&f, ask(&f, 0, 0), 10, 10, 0);
    cluster_destroy(f.c);
}

/* The version that a pull waits for is made on another shard, which knows nothing of the wait. */
Test(racy, a_parked_pull_is_woken_by_another_shards_update)
{
    struct fixture f;
    struct dt_data_reply reply;
    uint64_t request;

    start(&f);
    request = ask(&f, 0, 2);
    cr_assert_eq(push(&f, 1, 1, 1, 0, &reply), DT_OK);
    cluster_tick(f.c, 100);
    cr_assert_eq(cluster_count(f.c, request), 1, "PARKED and no more");
    answer_free(cluster_take(f.c, request));
    cr_assert_eq(push(&f, 2, 1, 1, 0, &reply), DT_OK);
    cluster_tick(f.c, 100);
    expect_pulled(&f, request, 8, 4, 2);
    cluster_destroy(f.c);
}

Test(racy, only_an_asynchronous_job_may_have_it)
{
    struct cluster *c = cluster_create(2);
    struct worker_at w;
    struct dt_job_params params;
    struct dt_hello_reply reply;

    worker_at_init(&w, 0);
    dt_job_params_default(&params);
    params.locking = DT_LOCK_NONE;
    cr_assert_eq(worker_hello(c, &w, 0, "job", &params, false, &reply), DT_R_BAD_VALUE);
    params.consistency = DT_ASYNC;
    params.locking = DT_LOCK_NONE;
    cr_assert_eq(worker_hello(c, &w, 0, "job", &params, false, &reply), DT_OK);
    cluster_destroy(c);
}

Test(racy, a_rule_that_needs_exclusion_is_refused)
{
    struct cluster *c = cluster_create(2);
    struct worker_at w;
    struct dt_job_params params;
    struct dt_declaration d = {.name = "w", .optimizer = "rmsprop-centered", .init = "zeros"};

    d.n_params = 1;
    strcpy(d.params[0].name, "lr");
    worker_at_init(&w, 0);
    dt_job_params_default(&params);
    params.consistency = DT_ASYNC;
    params.locking = DT_LOCK_NONE;
    worker_hello_all(c, &w, "job", &params);
    cr_assert_eq(worker_declare(c, &w, &d, 1), DT_R_BAD_VALUE);
    strcpy(d.optimizer, "rmsprop");
    cr_assert_eq(worker_declare(c, &w, &d, 1), DT_OK);
    cluster_destroy(c);
}

/* Blocks live as long as the job: a new one of that name has values of its own. */
Test(racy, a_fresh_job_starts_anew)
{
    struct fixture f;
    struct dt_data_reply reply;
    uint64_t step;
    struct worker_at again;
    struct dt_hello_reply hello;
    uint8_t homes[2];
    unsigned i;

    start(&f);
    cr_assert_eq(push(&f, 0, 0, 1, 0, &reply), DT_OK);
    for (i = 0; i < 3; i++)
        cr_assert_eq(worker_step_op(f.c, &f.w[i], DT_OP_LEAVE, 0, &step), DT_OK);
    worker_at_init(&again, 1);
    cr_assert_eq(worker_hello(f.c, &again, 0, "job", &f.params, true, &hello), DT_OK);
    cluster_start_job(f.c, &again, "job", &f.params, 2, 2, 1, 20, homes);
    f.w[1] = again;
    expect_pulled(&f, ask(&f, 1, 0), 20, 20, 0);
    cluster_destroy(f.c);
}
