/* cluster.c - command lines of a private cluster, and its report over all workers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cli/cluster_argv.h"

TestSuite(cluster, .timeout = 80);

static struct settings settings;
static struct cluster_worker workers[2];

static struct cluster
cluster_of(int argc, char **argv)
{
    struct dt_error err = {DT_OK, ""};
    struct cluster c = {.s = &settings, .n_ps = 2, .n_workers = 2, .workers = workers};

    cr_assert_eq(dt_options_init(settings_run, &settings, &err), DT_OK, "%s", err.text);
    cr_assert_eq(dt_options_parse(settings_run, &settings, argc, argv, NULL, &err), DT_OK, "%s",
                 err.text);
    snprintf(c.directory.path, sizeof(c.directory.path), "/tmp/d");
    return c;
}

static bool
has(const struct cluster_argv *a, const char *text)
{
    for (unsigned i = 0; i < a->n; i++) {
        if (strcmp(a->v[i], text) == 0)
            return true;
    }
    return false;
}

Test(cluster, psd_gets_its_own_socket_and_ends_with_its_job)
{
    struct cluster c = cluster_of(2, (char *[]){"run", "--model=toy", NULL});
    struct cluster_argv a = {0};

    cr_assert(cluster_argv_psd(&a, &c, 1));
    cr_expect(has(&a, "--listen=ipc:///tmp/d/ps1.sock"));
    cr_expect(has(&a, "--private-dir=/tmp/d"));
    cr_expect(has(&a, "--once"));
    cluster_argv_deinit(&a);
    dt_options_deinit(settings_run, &settings);
}

Test(cluster, workers_get_all_ps_tasks_and_rank_0_alone_writes_files)
{
    struct cluster c = cluster_of(5, (char *[]){"run", "--model=toy", "--save=/tmp/w",
                                                "--step-delay=0,7", "--threads=3", NULL});
    struct cluster_argv a = {0}, b = {0};

    cr_assert(cluster_argv_worker(&a, &c, 0, 5));
    cr_assert(cluster_argv_worker(&b, &c, 1, 6));
    cr_expect(has(&a, "--ps=ipc:///tmp/d/ps0.sock,ipc:///tmp/d/ps1.sock"));
    cr_expect(has(&a, "--rank=0") && has(&b, "--rank=1"));
    cr_expect(has(&a, "--save=/tmp/w") && !has(&b, "--save=/tmp/w"));
    cr_expect(has(&a, "--step-delay=0") && has(&b, "--step-delay=7"));
    cr_expect(has(&a, "--report-fd=5") && has(&b, "--report-fd=6"));
    cr_expect(has(&b, "--threads=3") && has(&b, "--workers=2") && has(&b, "--model=toy"));
    cr_expect(has(&a, "--start-timeout=60000ms") && has(&a, "--retry-for=5000ms"));
    cluster_argv_deinit(&a);
    cluster_argv_deinit(&b);
    dt_options_deinit(settings_run, &settings);
}

Test(cluster, the_report_sums_the_workers_and_counts_what_a_dead_one_left)
{
    struct cluster c = cluster_of(3, (char *[]){"run", "--data=d", "--batch=10", NULL});
    struct report all;

    /* 100 rows, 2 x 10 a step: ten steps are two epochs; worker 1 was killed after 3 steps. */
    workers[0] = (struct cluster_worker){.has_report = true,
                                         .report = {.steps = 10,
                                                    .rows = 100,
                                                    .samples = 100,
                                                    .seconds = 2,
                                                    .phases = {[PHASE_COMPUTE] = 2},
                                                    .stale_dropped = 1,
                                                    .unseen_rows = 10,
                                                    .train_loss = 0.5,
                                                    .counted = true,
                                                    .rounds = 10}};
    workers[1] = (struct cluster_worker){.samples = 30};
    cr_assert(cluster_report(&c, &all));
    cr_expect_eq(all.steps, 10);
    cr_expect_eq(all.samples, 130);
    cr_expect_eq(all.stale_dropped, 1);
    cr_expect_eq(all.rounds, 10);
    cr_expect_eq(all.unseen_rows, 10 + 70, "%llu", (unsigned long long)all.unseen_rows);
    cr_expect_eq(all.train_loss, 0.5);
    cr_expect_eq(all.phases[PHASE_COMPUTE], 2);
    workers[1] = workers[0];
    cr_assert(cluster_report(&c, &all));
    cr_expect_eq(all.phases[PHASE_COMPUTE], 4, "the sum over the workers");
    dt_options_deinit(settings_run, &settings);
}

static struct cluster_worker
reported(double loss, uint64_t rounds)
{
    return (struct cluster_worker){.has_report = true,
                                   .report = {.steps = 10,
                                              .train_loss = loss,
                                              .test_accuracy = 1 - loss,
                                              .rounds = rounds,
                                              .rows = 10}};
}

Test(cluster, the_score_is_that_of_the_last_to_leave)
{
    struct cluster c = cluster_of(3, (char *[]){"run", "--data=d", "--algorithm=agn", NULL});
    struct report all;

    workers[0] = reported(0.5, 20);
    workers[1] = reported(0.25, 30);
    cr_assert(cluster_report(&c, &all));
    cr_expect_eq(all.train_loss, 0.25);
    cr_expect_eq(all.test_accuracy, 0.75);
    cr_expect_eq(all.rounds, 30);
    workers[1] = reported(0.25, 20);
    cr_assert(cluster_report(&c, &all));
    cr_expect_eq(all.train_loss, 0.5, "on ties the first rank's");
    workers[1] = reported((double)NAN, 30);
    cr_assert(cluster_report(&c, &all));
    cr_expect_eq(all.train_loss, 0.5, "what was not evaluated does not count");
    dt_options_deinit(settings_run, &settings);
}

Test(cluster, staleness_is_merged_and_each_worker_is_told_of)
{
    struct cluster c = cluster_of(3, (char *[]){"run", "--data=d", "--algorithm=agn", NULL});
    struct report all;

    workers[0] = (struct cluster_worker){
        .has_report = true,
        .report = {.steps = 10, .rows = 10, .samples = 100, .seconds = 4, .has_staleness = true}};
    workers[1] = (struct cluster_worker){.samples = 30, .step = 3, .has_staleness = true};
    staleness_add(&workers[0].report.staleness, 2);
    staleness_add(&workers[1].staleness, 7);
    cr_assert(cluster_report(&c, &all));
    cr_expect(all.has_staleness);
    cr_expect_eq(staleness_count(&all.staleness), 2);
    cr_expect_eq(all.staleness.max, 7);
    json_t *detail = cluster_detail(&c);
    cr_assert_eq(json_array_size(detail), 2);
    const json_t *first = json_array_get(detail, 0), *killed = json_array_get(detail, 1);
    cr_expect_eq(json_number_value(json_object_get(first, "samples_per_second")), 25);
    cr_expect_eq(json_integer_value(json_object_get(killed, "rank")), 1);
    cr_expect_eq(json_integer_value(json_object_get(killed, "steps")), 3);
    cr_expect_eq(json_integer_value(json_object_get(killed, "samples")), 30);
    cr_expect(json_is_null(json_object_get(killed, "seconds")));
    cr_expect(json_is_object(json_object_get(killed, "staleness")));
    json_decref(detail);
    dt_options_deinit(settings_run, &settings);
}

Test(cluster, no_report_is_said)
{
    struct cluster c = cluster_of(2, (char *[]){"run", "--data=d", NULL});
    struct report all;

    memset(workers, 0, sizeof(workers));
    cr_expect_not(cluster_report(&c, &all));
    cr_expect(isnan(all.train_loss));
    dt_options_deinit(settings_run, &settings);
}
