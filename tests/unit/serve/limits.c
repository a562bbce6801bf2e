/*
 * limits.c - limits that change while shards serve: who is told which window, whose memory is checked.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/serve/cluster.h"

TestSuite(limits, .timeout = 80);

static struct cluster *
create_cluster(void)
{
    struct serve_config config = {.n_shards = 2,
                                  .window = 8,
                                  .window_bytes = 8 << 20,
                                  .max_session_bytes = 1 << 20,
                                  .memory_quota = 1 << 20};

    return cluster_create_with(&config);
}

/* The window that HELLO to this shard is told, its bytes in MiB behind the point: 8.8 */
static double
window_of(struct cluster *c, struct worker_at *w, uint32_t shard)
{
    struct dt_hello_reply *reply = calloc(1, sizeof(*reply));
    struct dt_job_params p;
    double window;

    dt_job_params_default(&p);
    p.workers = 2;
    cr_assert_eq(worker_hello(c, w, shard, "job", &p, false, reply), DT_OK);
    window = (double)reply->window + (double)(reply->window_bytes >> 20) / 10;
    free(reply);
    return window;
}

static void
change(struct cluster *c, uint32_t window, uint64_t window_mib, uint64_t quota)
{
    serve_set_limits(c->shared, &(struct serve_limits){.window = window,
                                                       .window_bytes = window_mib << 20,
                                                       .max_session_bytes = 1 << 20,
                                                       .memory_quota = quota});
}

Test(limits, a_life_keeps_its_window_on_every_connection)
{
    struct cluster *c = create_cluster();
    struct worker_at old, new;

    worker_at_init(&old, 0);
    worker_at_init(&new, 1);
    cr_expect_eq(window_of(c, &old, 0), 8.8);
    change(c, 4, 2, 1 << 20);
    cr_expect_eq(window_of(c, &old, 1), 8.8, "its life began before the change");
    worker_new_routes(&old);
    cr_expect_eq(window_of(c, &old, 0), 8.8, "what it has under way may be resent");
    cr_expect_eq(window_of(c, &new, 0), 4.2);
    cr_expect_eq(window_of(c, &new, 1), 4.2);
    cluster_destroy(c);
}

Test(limits, a_new_life_and_a_reader_have_the_new_window)
{
    struct cluster *c = create_cluster();
    struct worker_at w, reader;

    worker_at_init(&w, 0);
    worker_at_init(&reader, DT_NO_RANK);
    cr_expect_eq(window_of(c, &w, 0), 8.8);
    change(c, 4, 2, 1 << 20);
    cr_expect_eq(window_of(c, &reader, 0), 4.2);
    cluster_tick(c, 20000); /* its lease ends */
    w.uuid[0]++;
    worker_new_routes(&w);
    cr_expect_eq(window_of(c, &w, 0), 4.2);
    cluster_destroy(c);
}

Test(limits, a_new_quota_counts_for_the_next_declaration)
{
    struct cluster *c = create_cluster();
    struct dt_declaration *d = calloc(1, sizeof(*d));
    struct worker_at w;

    strcpy(d->name, "v");
    strcpy(d->optimizer, "sgd");
    strcpy(d->init, "zeros");
    d->n_params = 1;
    strcpy(d->params[0].name, "lr");
    d->n_dims = 1;
    d->shape[0] = 1u << 20; /* 4 MiB */
    worker_at_init(&w, 0);
    window_of(c, &w, 0);
    cr_expect_eq(worker_declare(c, &w, d, 1), DT_R_QUOTA);
    change(c, 8, 8, 64 << 20);
    cr_expect_eq(worker_declare(c, &w, d, 1), DT_OK);
    free(d);
    cluster_destroy(c);
}
