/* compare.c - curves, what follows from the runs, and which settings each run has. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "worker/cli/compare.h"

TestSuite(compare, .timeout = 80);

static void
add(struct curve *c, unsigned rank, double seconds, double samples, double loss, double accuracy)
{
    json_t *line =
        json_pack("{s:f, s:f, s:f}", "seconds", seconds, "samples", samples, "mean_loss", loss);

    if (isfinite(accuracy))
        json_object_set_new(line, "accuracy", json_real(accuracy));
    curve_add(c, rank, line);
    json_decref(line);
}

Test(compare, a_curve_is_about_all_workers)
{
    struct curve c = {0};

    add(&c, 0, 1, 100, 2, (double)NAN);
    add(&c, 2, 1.5, 50, 1, (double)NAN);
    add(&c, 0, 1.25, 200, 0.5, (double)NAN);
    cr_assert_eq(c.n_points, 3);
    cr_expect_eq(c.points[0].samples, 100);
    cr_expect_eq(c.points[0].loss, 2);
    cr_expect_eq(c.points[1].samples, 150);
    cr_expect_eq(c.points[1].loss, 1.5, "the mean of what two of them said");
    cr_expect_eq(c.points[2].samples, 250);
    cr_expect_eq(c.points[2].loss, 0.75);
    cr_expect_eq(c.points[2].seconds, 1.5, "time does not go back");
    curve_deinit(&c);
}

Test(compare, the_target_is_reached_when_it_was_first_there)
{
    struct curve c = {0};

    add(&c, 0, 1, 1, 1, 0.5);
    add(&c, 1, 2, 1, 1, 0.75);
    add(&c, 0, 3, 2, 1, 0.625);
    add(&c, 0, 4, 3, 1, 0.8125);
    cr_expect_eq(curve_seconds_to(&c, 0.5), 1);
    cr_expect_eq(curve_seconds_to(&c, 0.6), 2);
    cr_expect_eq(curve_seconds_to(&c, 0.76), 4);
    cr_expect(isnan(curve_seconds_to(&c, 0.9)));
    cr_expect(isnan(curve_seconds_to(&c, (double)NAN)));
    curve_deinit(&c);
}

Test(compare, a_long_curve_is_thinned_out)
{
    struct curve c = {0};

    for (int i = 0; i < 5 * (int)CURVE_MAX_POINTS; i++)
        add(&c, 0, i, i, 1, (double)NAN);
    cr_expect_leq(c.n_points, CURVE_MAX_POINTS);
    cr_expect_geq(c.n_points, CURVE_MAX_POINTS / 2);
    cr_expect_eq(c.points[0].seconds, 0);
    for (unsigned i = 1; i < c.n_points; i++)
        cr_assert_eq(c.points[i].seconds, i * (double)c.stride, "at %u", i);
    curve_deinit(&c);
}

static struct settings settings;

static struct compare
compare_of(int argc, char **argv, enum dt_status expected)
{
    struct dt_error err = {DT_OK, ""};
    struct compare c;

    settings = (struct settings){0};
    cr_assert_eq(dt_options_init(settings_compare, &settings, &err), DT_OK, "%s", err.text);
    cr_assert_eq(dt_options_parse(settings_compare, &settings, argc, argv, NULL, &err), DT_OK, "%s",
                 err.text);
    enum dt_status r = compare_init(&c, &settings, &err);
    cr_assert_eq(r, expected, "%s", err.text);
    return c;
}

Test(compare, local_comes_first_and_all_are_all)
{
    struct compare c = compare_of(2, (char *[]){"compare", "--model=toy", NULL}, DT_OK);
    unsigned n = 0;

    while (algorithm_at(n))
        n++;
    cr_expect_eq(c.n_entries, n);
    cr_expect_str_eq(c.entries[0].algorithm->name, "local");
    for (unsigned i = 1; i < c.n_entries; i++)
        cr_expect_str_neq(c.entries[i].algorithm->name, "local");
    compare_deinit(&c);
    dt_options_deinit(settings_compare, &settings);
}

static void
expect_init(int argc, char **argv, enum dt_status expected)
{
    struct compare c = compare_of(argc, argv, expected);

    compare_deinit(&c);
    dt_options_deinit(settings_compare, &settings);
}

Test(compare, what_one_algorithm_refuses_is_refused_at_once)
{
    char *toy = "--model=toy", *name = "compare";

    expect_init(3, (char *[]){name, toy, "--algorithms=nope", NULL}, DT_E_USAGE);
    expect_init(4, (char *[]){name, toy, "--algorithms=ssgd,agn", "--aggregate=1", NULL},
                DT_E_USAGE);
    expect_init(3, (char *[]){name, toy, "--slow=2=5", NULL}, DT_E_USAGE);
    expect_init(3, (char *[]){name, toy, "--slow=1", NULL}, DT_E_USAGE);
    expect_init(3, (char *[]){name, toy, "--slow=1=0", NULL}, DT_E_USAGE);
    expect_init(4, (char *[]){name, "--model=linear", "--data=x", "--target=.5", NULL}, DT_E_USAGE);
    expect_init(4, (char *[]){name, toy, "--algorithms=ssgd", "--aggregate=1", NULL}, DT_OK);
}

Test(compare, what_some_algorithms_take_goes_to_these)
{
    char *toy = "--model=toy", *name = "compare", *some = "--algorithms=ssgd,eamsgd,easgd,ssp";

    expect_init(4, (char *[]){name, toy, some, "--alpha=.25", NULL}, DT_OK);
    expect_init(4, (char *[]){name, toy, some, "--alpha=.75", NULL}, DT_E_USAGE); /* of easgd */
    expect_init(4, (char *[]){name, toy, some, "--momentum=.5", NULL}, DT_OK);
    expect_init(4, (char *[]){name, toy, some, "--staleness-bound=1", NULL}, DT_OK);
    expect_init(4, (char *[]){name, toy, some, "--lr-per-rank=.1,.1", NULL}, DT_E_USAGE);
    expect_init(3, (char *[]){name, toy, "--lr-per-rank=.1,.1", NULL}, DT_OK);
    expect_init(3, (char *[]){name, toy, "--lr-per-rank=.1", NULL}, DT_E_USAGE);
    expect_init(4, (char *[]){name, toy, "--algorithms=ssgd,agn", "--alpha=.25", NULL}, DT_E_USAGE);
}

static struct compare_entry
entry(const char *name, double loss, double accuracy, double seconds, double growth)
{
    struct compare_entry e = {.algorithm = algorithm_find(name), .n_runs = 1};

    e.least_loss = e.most_loss = loss;
    e.even = (struct compare_run){
        .done = true,
        .fast_seconds = seconds,
        .report = {
            .train_loss = loss, .test_accuracy = accuracy, .seconds = seconds, .samples = 1000}};
    e.slowed = e.even;
    e.slowed.fast_seconds = seconds * growth;
    add(&e.even.curve, 0, seconds / 2, 1, 1, accuracy);
    add(&e.slowed.curve, 0, seconds * growth / 2, 1, 1, accuracy);
    return e;
}

static struct compare
four(struct settings *s)
{
    struct compare c = {.s = s, .n_entries = 4, .target = 0.75};

    c.entries[0] = entry("local", 0.25, 0.875, 1, 1);
    c.entries[1] = entry("ssgd", 0.5, 0.75, 4, 3);
    c.entries[2] = entry("hogwild", 0.25, 0.8125, 3, 1.5);
    c.entries[3] = entry("agn", 0.75, 0.625, 2, 1);
    return c;
}

Test(compare, advice_follows_from_what_was_measured)
{
    struct settings s = {.slow = "1=5", .repeat = 1, .workers = 2};
    struct compare c = four(&s);
    struct advice a[ADVICE_N];

    compare_advise(&c, a);
    cr_expect_str_eq(a[ADVICE_REPRODUCIBLE].answer->algorithm->name, "ssgd");
    cr_expect_str_eq(a[ADVICE_FAST].answer->algorithm->name, "hogwild", "agn does not reach it");
    cr_expect_str_eq(a[ADVICE_TOLERANT].answer->algorithm->name, "hogwild",
                     "agn loses no time, but does not reach the target");
    c.target = 0.5;
    compare_advise(&c, a);
    cr_expect_str_eq(a[ADVICE_TOLERANT].answer->algorithm->name, "agn");
    c.entries[2].slowed.fast_seconds = 3.15; /* x 1.05, and the better loss */
    compare_advise(&c, a);
    cr_expect_str_eq(a[ADVICE_TOLERANT].answer->algorithm->name, "hogwild");
    c.entries[2].slowed.report.test_accuracy = 0.75; /* the slow one costs accuracy */
    compare_advise(&c, a);
    cr_expect_str_eq(a[ADVICE_TOLERANT].answer->algorithm->name, "agn");
    s.repeat = 2;
    for (unsigned i = 1; i < c.n_entries; i++)
        c.entries[i].n_runs = 2;
    c.entries[1].most_loss += 0.25;
    c.entries[2].most_loss += 0.125;
    c.entries[3].most_loss += 0.5;
    compare_advise(&c, a);
    cr_expect_str_eq(a[ADVICE_REPRODUCIBLE].answer->algorithm->name, "hogwild");
    compare_deinit(&c);
}

Test(compare, what_was_not_measured_is_not_answered)
{
    struct settings s = {.model = "linear", .repeat = 1, .workers = 2};
    struct compare c = four(&s);
    struct advice a[ADVICE_N];

    c.target = 0.9;
    c.entries[1].even.done = false; /* the synchronous one */
    compare_advise(&c, a);
    for (unsigned i = 0; i < ADVICE_N; i++) {
        cr_expect_null(a[i].answer, "%s", a[i].question);
        cr_expect_gt(strlen(a[i].why), 0);
    }
    c.target = (double)NAN;
    compare_advise(&c, a);
    cr_expect_str_eq(a[ADVICE_FAST].answer->algorithm->name, "agn", "the first at its end");
    cr_expect_not_null(strstr(a[ADVICE_FAST].why, "the model has no accuracy"), "%s",
                       a[ADVICE_FAST].why);
    s.model = "softmax";
    c.entries[0].even.done = false; /* its accuracy would have been the target */
    compare_advise(&c, a);
    cr_expect_not_null(strstr(a[ADVICE_FAST].why, "local failed"), "%s", a[ADVICE_FAST].why);
    compare_deinit(&c);
}

Test(compare, fast_workers_are_those_that_are_not_slow)
{
    json_t *w = json_pack("[{s:f}, {s:f}, {s:n}]", "seconds", 2.0, "seconds", 8.0, "seconds");

    cr_expect_eq(compare_fast_seconds(w, 1), 2);
    cr_expect_eq(compare_fast_seconds(w, 0), 8);
    cr_expect_eq(compare_fast_seconds(w, UINT32_MAX), 8);
    json_decref(w);
}
