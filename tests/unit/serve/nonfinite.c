/*
 * nonfinite.c - shard 0 hears of a variable with NaN or Inf from whatever shard, once.
 */
#include <criterion/criterion.h>

#include "cluster.h"
#include "psd/serve/control.h"

TestSuite(nonfinite, .timeout = 80);

enum { ELEMENTS = 2 };

static void
push(struct cluster *c, struct worker_at *w, uint32_t shard, uint32_t variable, float g)
{
    const float gradient[ELEMENTS] = {g, 1}, *frame = gradient;
    struct dt_data d = {.counter = ++w->counter, .weight = 1, .count = 1, .n_items = 1};
    uint32_t n = ELEMENTS;
    struct answer *a;

    d.items[0].variable = variable;
    a = cluster_take(c, worker_data(c, w, shard, DT_OP_PUSH, &d, &frame, &n));
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    answer_free(a);
}

/* Two variables on two shards; `shard[v]` is where v is pushed to, by rank 1. Twice: the second is not told again. */
static void
expect_told(uint32_t locking)
{
    struct cluster *c = cluster_create(2);
    const struct control_job *job;
    struct worker_at w[2];
    struct dt_job_params p;
    uint8_t homes[2];
    uint32_t v, k;

    dt_job_params_default(&p);
    p.workers = 2;
    p.consistency = DT_ASYNC;
    p.locking = locking;
    worker_at_init(&w[0], 0);
    worker_at_init(&w[1], 1);
    cluster_start_job(c, &w[0], "job", &p, 2, ELEMENTS, 1e9f, 0, homes);
    cluster_start_job(c, &w[1], "job", &p, 2, ELEMENTS, 1e9f, 0, homes);
    job = c->shards[0]->control->jobs;
    for (v = 0; v < 2; v++)
        push(c, &w[0], locking == DT_LOCK_NONE ? 0 : homes[v], v, 1e20f);
    cluster_tick(c, 100);
    cluster_settle(c);
    cr_assert_eq(job->n_nonfinite, 0, "1e29 is finite");
    for (k = 0; k < 2; k++) {
        for (v = 0; v < 2; v++)
            push(c, &w[1], locking == DT_LOCK_NONE ? 1 : homes[v], v, 1e30f);
        cluster_tick(c, 100);
        cluster_settle(c);
        cr_assert_eq(job->n_nonfinite, 2, "%u", job->n_nonfinite);
    }
    for (v = 0; v < 2; v++) {
        cr_assert_eq(job->nonfinite[v].rank, 1);
        cr_assert_str_empty(job->nonfinite[v].slot);
        cr_assert_float_eq(job->nonfinite[v].largest, 1e30, 1e24);
    }
    cr_assert_str_neq(job->nonfinite[0].variable, job->nonfinite[1].variable);
    cluster_destroy(c);
}

Test(nonfinite, is_told_once_a_variable)
{
    expect_told(DT_LOCK_SLICE);
}

Test(nonfinite, with_locking_none_too)
{
    expect_told(DT_LOCK_NONE);
}
