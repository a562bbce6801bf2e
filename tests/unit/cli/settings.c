/* settings.c - which options go together, how long a training is, what run hands to its workers. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "psd/optim/optimizer.h"
#include "worker/cli/settings.h"

TestSuite(settings, .timeout = 80);

static enum dt_status
parse(const struct dt_option *table, struct settings *s, struct dt_error *err, int argc,
      char **argv)
{
    memset(s, 0, sizeof(*s));
    enum dt_status r = dt_options_init(table, s, err);
    return r == DT_OK ? dt_options_parse(table, s, argc, argv, NULL, err) : r;
}

#define PARSE(table, s, err, ...)                                                                  \
    parse((table), (s), (err), (int)(sizeof((char *[]){"x", __VA_ARGS__}) / sizeof(char *)),       \
          (char *[]){"x", __VA_ARGS__})

/* Parse and check; the text must name `word`. */
#define EXPECT_USAGE(table, check, word, ...)                                                      \
    do {                                                                                           \
        struct settings s_;                                                                        \
        struct dt_error err_ = {DT_OK, ""};                                                        \
        enum dt_status r_ = PARSE(table, &s_, &err_, __VA_ARGS__);                                 \
        if (r_ == DT_OK)                                                                           \
            r_ = check(&s_, &err_);                                                                \
        cr_expect_eq(r_, DT_E_USAGE, "%s", err_.text);                                             \
        cr_expect(strstr(err_.text, word) != NULL, "'%s' does not say %s", err_.text, word);       \
        dt_options_deinit(table, &s_);                                                             \
    } while (0)

Test(settings, defaults_of_train_are_the_documented_ones)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(PARSE(settings_train, &s, &err, "--ps=ipc:///tmp/a", "--job", "j", "--data=d"),
                 DT_OK, "%s", err.text);
    cr_expect_eq(settings_check_train(&s, &err), DT_OK, "%s", err.text);
    cr_expect_str_eq(s.algorithm, "ssgd");
    cr_expect_str_eq(s.model, "softmax");
    cr_expect_eq(s.batch, 100);
    cr_expect_float_eq(settings_lr(&s), 0.1, 1e-12);
    cr_expect_eq(s.lease_ms, 10000);
    cr_expect_eq(s.start_timeout_ms, 0);
    cr_expect_eq(s.retry_for_ms, 60000);
    cr_expect_eq(s.max_bad, 10);
    cr_expect_str_eq(settings_reduce(&s), "mean");
    cr_expect_str_eq(settings_on_loss(&s), "shrink");
    cr_expect_eq(settings_log_level(&s), DT_LOG_INFO);
    cr_expect_eq(s.report_fd, -1);
    dt_options_deinit(settings_train, &s);
}

Test(settings, run_waits_a_minute_for_its_workers_and_five_seconds_for_psd)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(PARSE(settings_run, &s, &err, "--data=d"), DT_OK, "%s", err.text);
    cr_expect_eq(settings_check_run(&s, &err), DT_OK, "%s", err.text);
    cr_expect_eq(s.workers, 2);
    cr_expect_eq(s.ps_tasks, 1);
    cr_expect_eq(s.start_timeout_ms, 60000);
    cr_expect_eq(s.retry_for_ms, 5000);
    dt_options_deinit(settings_run, &s);
}

Test(settings, ps_tasks_are_a_list)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(PARSE(settings_train, &s, &err, "--ps", "tcp://a:1,tcp://b:2"), DT_OK, "%s",
                 err.text);
    cr_assert_eq(settings_n_ps(&s), 2);
    cr_expect_str_eq(s.ps[1], "tcp://b:2");
    dt_options_deinit(settings_train, &s);
}

Test(settings, what_is_missing_is_named)
{
    EXPECT_USAGE(settings_train, settings_check_train, "--ps", "--data=d");
    EXPECT_USAGE(settings_train, settings_check_train, "--data", "--ps=tcp://a:1", "--job=j");
    EXPECT_USAGE(settings_train, settings_check_train, "--job", "--ps=tcp://a:1", "--data=d");
    EXPECT_USAGE(settings_train, settings_check_train, "--rank", "--ps=tcp://a:1", "--data=d",
                 "--job=j", "--workers=2");
}

/* Whether two hosts are one is the resolver's affair. */
Test(settings, a_ps_task_is_named_once)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    EXPECT_USAGE(settings_train, settings_check_train, "--ps names tcp://a:1 twice", "--data=d",
                 "--job=j", "--ps=tcp://a:1,tcp://a:2,tcp://a:1");
    EXPECT_USAGE(settings_train, settings_check_train, "--ps names tcp://A.b:01 twice", "--data=d",
                 "--job=j", "--ps=tcp://a.B:1,tcp://A.b:01");
    EXPECT_USAGE(settings_train, settings_check_train, "--ps names ipc:///tmp/./p twice",
                 "--data=d", "--job=j", "--ps=ipc:///tmp/p,ipc:///tmp/./p");
    EXPECT_USAGE(settings_train, settings_check_train, "twice", "--data=d", "--job=j",
                 "--ps=tcp://[::1]:1,tcp://[::1]:1");
    cr_assert_eq(PARSE(settings_train, &s, &err, "--data=d", "--job=j",
                       "--ps=tcp://a:1,tcp://a:2,tcp://b:1,ipc:///tmp/a,ipc:///tmp/b"),
                 DT_OK);
    cr_expect_eq(settings_check_train(&s, &err), DT_OK, "%s", err.text);
    dt_options_deinit(settings_train, &s);
}

Test(settings, what_makes_no_sense_together_is_refused)
{
    EXPECT_USAGE(settings_train, settings_check_train, "nonsense", "--algorithm=nonsense",
                 "--data=d");
    EXPECT_USAGE(settings_train, settings_check_train, "cnn", "--model=cnn", "--data=d");
    EXPECT_USAGE(settings_train, settings_check_train, "--data", "--model=toy", "--data=d");
    EXPECT_USAGE(settings_train, settings_check_train, "--target-accuracy", "--model=toy",
                 "--target-accuracy=0.5");
    EXPECT_USAGE(settings_train, settings_check_train, "--ps", "--algorithm=local", "--model=toy",
                 "--ps=a");
    EXPECT_USAGE(settings_train, settings_check_train, "--workers", "--algorithm=local",
                 "--model=toy", "--workers=2");
    EXPECT_USAGE(settings_train, settings_check_train, "--job", "--algorithm=local", "--model=toy",
                 "--job=j");
    EXPECT_USAGE(settings_train, settings_check_train, "--fresh", "--algorithm=local",
                 "--model=toy", "--fresh");
    EXPECT_USAGE(settings_train, settings_check_train, "--placement", "--ps=tcp://a:1", "--job=j",
                 "--data=d", "--placement=greedy");
    EXPECT_USAGE(settings_run, settings_check_run, "--aggregate", "--model=toy", "--workers=2",
                 "--aggregate=3", "--window=2");
    EXPECT_USAGE(settings_run, settings_check_run, "--step-delay", "--model=toy", "--workers=3",
                 "--step-delay=1,2");
    EXPECT_USAGE(settings_run, settings_check_run, "--step-delay", "--model=toy",
                 "--step-delay=5s");
}

Test(settings, numbers_out_of_range_are_refused)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};
    const char *bad[] = {"--workers=0",  "--workers=2000", "--batch=0",     "--lr=-1",
                         "--lr=nan",     "--epochs=0",     "--rank=-1",     "--target-accuracy=2",
                         "--lease=50ms", "--reduce=most",  "--on-loss=cry", "--steps=1x"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", bad[i]);
        cr_expect_eq(PARSE(settings_train, &s, &err, text), DT_E_USAGE, "%s", bad[i]);
        dt_options_deinit(settings_train, &s);
    }
}

static void
length(uint64_t rows, uint64_t epochs, uint64_t steps, uint64_t want_steps, uint64_t want_epoch)
{
    struct settings s = {
        .workers = 2, .replicas = 1, .batch = 10, .epochs = epochs, .steps = steps};
    uint64_t got_steps = 0, got_epoch = 0;

    settings_length(&s, rows, &got_steps, &got_epoch);
    cr_expect_eq(got_steps, want_steps, "%llu steps", (unsigned long long)got_steps);
    cr_expect_eq(got_epoch, want_epoch, "%llu an epoch", (unsigned long long)got_epoch);
}

Test(settings, length_comes_from_epochs_and_steps)
{
    length(1001, 3, 0, 153, 51); /* a short last batch is a step */
    length(1000, 0, 0, 250, 50); /* five epochs */
    length(1000, 0, 400, 400, 50);
    length(1000, 2, 400, 100, 50); /* whichever ends first */
    length(1000, 2, 7, 7, 50);
    length(0, 0, 0, 100, 100); /* no data: 100 steps, one epoch */
    length(0, 9, 30, 30, 30);
}

static bool
has(char *const *argv, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(argv[i], text) == 0)
            return true;
    }
    return false;
}

Test(settings, run_hands_on_what_was_given_and_its_own_defaults)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};
    char *argv[64];
    unsigned n = 0;

    cr_assert_eq(PARSE(settings_run, &s, &err, "--model=toy", "--lr=0.25", "--steps=7",
                       "--on-loss=fail", "--lease=2s", "--step-delay=1,2", "--json",
                       "--save=/tmp/x"),
                 DT_OK, "%s", err.text);
    cr_assert(settings_forward(&s, &settings_run_to_train, argv, &n, 64));
    cr_expect(has(argv, n, "--model=toy"));
    cr_expect(has(argv, n, "--lr=0.25"));
    cr_expect(has(argv, n, "--steps=7"));
    cr_expect(has(argv, n, "--on-loss=fail"));
    cr_expect(has(argv, n, "--lease=2000ms"));
    cr_expect(has(argv, n, "--start-timeout=60000ms"));
    cr_expect(has(argv, n, "--retry-for=5000ms"));
    cr_expect_eq(n, 7, "%u options", n);
    for (unsigned i = 0; i < n; i++)
        free(argv[i]);
    dt_options_deinit(settings_run, &s);
}

Test(settings, what_run_hands_on_train_reads_back_equal)
{
    struct settings run, train;
    struct dt_error err = {DT_OK, ""};
    char *argv[64] = {"train"};
    unsigned n = 1;

    cr_assert_eq(PARSE(settings_run, &run, &err, "--data=d", "--lr=0.30000001192092896",
                       "--target-accuracy=0.8123", "--seed=18446744073709551615", "--batch=17",
                       "--aggregate=1", "--reduce=sum", "--round-timeout=1500ms", "--max-bad=3",
                       "--epochs=2"),
                 DT_OK, "%s", err.text);
    cr_assert(settings_forward(&run, &settings_run_to_train, argv, &n, 64));
    cr_assert_eq(parse(settings_train, &train, &err, (int)n, argv), DT_OK, "%s", err.text);
    cr_expect_eq(train.lr, run.lr);
    cr_expect_eq(train.target_accuracy, run.target_accuracy);
    cr_expect_eq(train.seed, UINT64_MAX);
    cr_expect_eq(train.batch, 17);
    cr_expect_eq(train.aggregate, 1);
    cr_expect_str_eq(settings_reduce(&train), "sum");
    cr_expect_eq(train.round_timeout_ms, 1500);
    cr_expect_eq(train.max_bad, 3);
    cr_expect_eq(train.epochs, 2);
    cr_expect_str_eq(train.data, "d");
    for (unsigned i = 1; i < n; i++)
        free(argv[i]);
    dt_options_deinit(settings_run, &run);
    dt_options_deinit(settings_train, &train);
}

Test(settings, lists_are_handed_on_whole)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};
    char *argv[64];
    unsigned n = 0;

    cr_assert_eq(PARSE(settings_run, &s, &err, "--model=toy", "--algorithm=ssgd-diff-lr",
                       "--workers=3", "--ps-tasks=2", "--lr-per-rank=0.1,2e-2,.003",
                       "--place=a=0,b=0", "--placement=round-robin"),
                 DT_OK, "%s", err.text);
    cr_assert_eq(settings_check_run(&s, &err), DT_OK, "%s", err.text);
    cr_assert(settings_forward(&s, &settings_run_to_train, argv, &n, 64));
    cr_expect(has(argv, n, "--lr-per-rank=0.1,2e-2,.003"));
    cr_expect(has(argv, n, "--place=a=0,b=0"));
    cr_expect(has(argv, n, "--placement=round-robin"));
    for (unsigned i = 0; i < n; i++)
        free(argv[i]);
    dt_options_deinit(settings_run, &s);
}

Test(settings, help_names_each_algorithm_and_each_rule_for_gradients)
{
    const char *name;

    for (const struct dt_option *row = settings_train; row->name; row++) {
        if (strcmp(row->name, "algorithm") == 0)
            for (unsigned i = 0; algorithm_at(i); i++)
                cr_expect(strstr(row->help, algorithm_at(i)->name) != NULL, "%s",
                          algorithm_at(i)->name);
        if (strstr(row->name, "-optimizer"))
            for (unsigned i = 0; (name = optimizer_name_at(i)) != NULL; i++)
                cr_expect_eq(strstr(row->help, name) != NULL, optimizer_has_rate(name), "%s", name);
    }
}

static unsigned
n_choices(const struct dt_option *row)
{
    unsigned n = 1;

    for (const char *p = row->choices; *p; p++)
        n += *p == '|';
    return n;
}

/* What shell completion offers is the table of algorithms, and the rules for gradients. */
Test(settings, choices_are_the_algorithms_and_the_rules)
{
    for (const struct dt_option *row = settings_train; row->name; row++) {
        unsigned n = 0;
        const char *name;

        if (strcmp(row->name, "algorithm") == 0) {
            for (unsigned i = 0; algorithm_at(i); i++, n++)
                cr_expect(strstr(row->choices, algorithm_at(i)->name) != NULL);
            cr_expect_eq(n_choices(row), n);
        }
        if (strstr(row->name, "-optimizer")) {
            for (unsigned i = 0; (name = optimizer_name_at(i)) != NULL; i++) {
                cr_expect_eq(strstr(row->choices, name) != NULL, optimizer_has_rate(name));
                n += optimizer_has_rate(name);
            }
            cr_expect_eq(n_choices(row), n);
        }
    }
}

Test(settings, step_delay_is_one_for_all_or_one_a_rank)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};
    uint64_t ms = 0;

    cr_assert_eq(
        PARSE(settings_run, &s, &err, "--model=toy", "--workers=3", "--step-delay=0,0,250"), DT_OK,
        "%s", err.text);
    cr_expect_eq(settings_step_delay(&s, 0, &ms, &err), DT_OK);
    cr_expect_eq(ms, 0);
    cr_expect_eq(settings_step_delay(&s, 2, &ms, &err), DT_OK);
    cr_expect_eq(ms, 250);
    dt_options_deinit(settings_run, &s);
}
