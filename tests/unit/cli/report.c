/* report.c - the final object: what must be in it, and that it survives the way through run. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cli/report.h"

TestSuite(report, .timeout = 80);

static const struct report sample = {
    .algorithm = "ssgd",
    .model = "softmax",
    .workers = 3,
    .ps_tasks = 1,
    .rank = 2,
    .rows = 1000,
    .batch = 10,
    .steps = 40,
    .samples = 390,
    .seconds = 2,
    .phases = {[PHASE_COMPUTE] = 1.5, [PHASE_WAIT] = 0.5},
    .train_loss = 0.5,
    .test_loss = 0.75,
    .test_accuracy = 0.875,
    .stale_dropped = 4,
    .partial = 1,
    .unseen_rows = 40,
    .lives_lost = 1,
    .counted = true,
    .rounds = 41,
    .ps_stale = 8,
    .ps_partial = 1,
};

Test(report, holds_what_is_promised)
{
    const char *keys[] = {"algorithm",   "model",         "workers",       "ps_tasks",
                          "steps",       "samples",       "seconds",       "samples_per_second",
                          "train_loss",  "test_accuracy", "stale_dropped", "partial",
                          "unseen_rows", "rounds",        "time"};
    json_t *o = report_json(&sample);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        cr_expect_not_null(json_object_get(o, keys[i]), "%s", keys[i]);
    cr_expect_float_eq(json_number_value(json_object_get(o, "samples_per_second")), 195, 1e-9);
    json_decref(o);
}

Test(report, reads_back_equal)
{
    json_t *o = report_json(&sample);
    struct report back;

    report_from_json(&back, o);
    cr_expect_str_eq(back.algorithm, sample.algorithm);
    cr_expect_eq(back.rank, 2);
    cr_expect_eq(back.samples, sample.samples);
    cr_expect_eq(back.steps, sample.steps);
    cr_expect_eq(back.train_loss, sample.train_loss);
    cr_expect_eq(back.test_accuracy, sample.test_accuracy);
    cr_expect_eq(back.stale_dropped, 4);
    cr_expect_eq(back.partial, 1);
    cr_expect_eq(back.unseen_rows, 40);
    cr_expect(back.counted);
    cr_expect_eq(back.rounds, 41);
    cr_expect_float_eq(back.phases[PHASE_COMPUTE], 1.5, 1e-9);
    cr_expect_float_eq(back.phases[PHASE_WAIT], 0.5, 1e-9);
    json_decref(o);
}

static void
expect_text(const struct report *r, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    report_write_text(r, out);
    fclose(out);
    cr_expect_not_null(strstr(text, expected), "'%s' is not in: %s", expected, text);
    free(text);
}

Test(report, says_where_the_time_went)
{
    struct report r = sample;

    expect_text(&r, "time           compute 75 %, push 0 %, wait 25 %, other 0 %\n");
    r.ps_tasks = 0;
    r.phases[PHASE_WAIT] = 0;
    r.phases[PHASE_OTHER] = 0.5;
    expect_text(&r, "time           compute 75 %, other 25 %\n");
}

Test(report, staleness_and_the_workers_come_along)
{
    struct report r = sample, back;
    json_t *o, *detail = json_pack("[{s:i}, {s:i}]", "rank", 0, "rank", 1);

    r.has_staleness = true;
    for (uint64_t v = 0; v < 10; v++)
        staleness_add(&r.staleness, v);
    r.workers_detail = detail;
    o = report_json(&r);
    report_from_json(&back, o);
    cr_expect(back.has_staleness);
    cr_expect_eq(staleness_count(&back.staleness), 10);
    cr_expect_eq(back.staleness.max, 9);
    cr_expect_eq(json_array_size(json_object_get(o, "workers_detail")), 2);
    json_decref(o);
    json_decref(detail);
}

Test(report, what_is_not_known_is_null)
{
    struct report r = sample, back;

    r.test_accuracy = (double)NAN;
    r.counted = false;
    memset(r.phases, 0, sizeof(r.phases));
    json_t *o = report_json(&r);
    cr_expect(json_is_null(json_object_get(o, "test_accuracy")));
    cr_expect(json_is_null(json_object_get(o, "rounds")));
    cr_expect(json_is_null(json_object_get(o, "staleness")), "not an asynchronous job");
    cr_expect(json_is_null(json_object_get(o, "time")));
    cr_expect_null(json_object_get(o, "workers_detail"));
    report_from_json(&back, o);
    cr_expect(isnan(back.test_accuracy));
    cr_expect_not(back.counted);
    cr_expect_not(back.has_staleness);
    json_decref(o);
}
