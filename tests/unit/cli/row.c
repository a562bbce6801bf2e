/* row.c - what the options of a row make of it, and which are refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "worker/cli/elastic.h"
#include "worker/cli/row.h"

TestSuite(row, .timeout = 40);

#define MAX_ARGS 8

/* Parse "--x=a --y=b" as options of `run` of the toy model. */
static enum dt_status
parse(struct settings *s, struct dt_error *err, const char *options)
{
    static char text[256];
    char *argv[MAX_ARGS + 3] = {"run", "--model=toy"};
    int argc = 2;

    snprintf(text, sizeof(text), "%s", options);
    for (char *p = strtok(text, " "); p && argc < MAX_ARGS + 2; p = strtok(NULL, " "))
        argv[argc++] = p;
    memset(s, 0, sizeof(*s));
    cr_assert_eq(dt_options_init(settings_run, s, err), DT_OK);
    cr_assert_eq(dt_options_parse(settings_run, s, argc, argv, NULL, err), DT_OK, "%s", err->text);
    return settings_check_run(s, err);
}

static void
expect_refused(const char *options, const char *word)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(parse(&s, &err, options), DT_E_USAGE, "%s is not refused", options);
    cr_expect(strstr(err.text, word) != NULL, "%s: '%s' does not say %s", options, err.text, word);
    dt_options_deinit(settings_run, &s);
}

Test(row, without_options_it_is_the_tables)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=downpour"), DT_OK, "%s", err.text);
    struct algorithm row = settings_row(&s);
    const struct algorithm *table = algorithm_find("downpour");
    cr_expect(row.consistency == table->consistency && row.locking == table->locking &&
              row.window == table->window && row.reduction == table->reduction &&
              row.exchange == table->exchange);
    cr_expect_str_eq(row.local_optimizer, table->local_optimizer);
    cr_expect_str_eq(row.server_optimizer, table->server_optimizer);
    cr_expect(row.lr == table->lr && row.local_lr == table->local_lr);
    cr_expect_float_eq(settings_rank_lr(&s), 0, 0);
    dt_options_deinit(settings_run, &s);
}

Test(row, options_change_it)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err,
                       "--algorithm=agn --window=4 --window-reduction=sum --lr=0.5 "
                       "--server-optimizer=sgd --local-optimizer=adagrad --local-lr=0.25"),
                 DT_OK, "%s", err.text);
    struct algorithm row = settings_row(&s);
    cr_expect_eq(row.window, 4);
    cr_expect_eq(row.reduction, REDUCTION_SUM);
    cr_expect_str_eq(row.server_optimizer, "sgd");
    cr_expect_str_eq(row.local_optimizer, "adagrad");
    cr_expect_float_eq(settings_lr(&s), 0.5, 0);
    cr_expect_float_eq(settings_local_lr(&s), 0.25, 0);
    dt_options_deinit(settings_run, &s);
}

Test(row, the_rows_own_rule_keeps_its_own_rate)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=downpour-easy --server-optimizer=adagrad"), DT_OK,
                 "%s", err.text);
    cr_expect_float_eq(settings_lr(&s), algorithm_find("downpour-easy")->lr, 0);
    dt_options_deinit(settings_run, &s);
}

Test(row, local_takes_the_rate_of_its_rule_from_lr)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=local --local-optimizer=adam --lr=0.01"), DT_OK, "%s",
                 err.text);
    cr_expect_str_eq(settings_row(&s).local_optimizer, "adam");
    dt_options_deinit(settings_run, &s);
}

Test(row, another_rule_needs_its_rate)
{
    expect_refused("--algorithm=agn --server-optimizer=sgd", "--lr");
    expect_refused("--algorithm=agn --server-optimizer=sgd --local-lr=1", "--lr");
    expect_refused("--algorithm=agn --local-optimizer=sgd", "--local-lr");
    expect_refused("--algorithm=agn --local-optimizer=sgd --lr=1", "--local-lr");
    expect_refused("--algorithm=ssgd --window=2 --local-optimizer=sgd", "--local-lr");
    expect_refused("--algorithm=local --local-optimizer=adam", "--lr");
}

Test(row, rules_are_known_and_follow_a_gradient)
{
    expect_refused("--server-optimizer=nonsense --lr=1", "sgd, momentum, nesterov, adagrad, adam");
    expect_refused("--algorithm=agn --local-optimizer=nonsense --local-lr=1",
                   "sgd, momentum, nesterov, adagrad, adam");
    expect_refused("--algorithm=hogwild --server-optimizer=rmsprop-centered --lr=1", "exclude");
    expect_refused("--server-optimizer=add --lr=1", "gradients");
    expect_refused("--server-optimizer=assign --lr=1", "gradients");
    expect_refused("--algorithm=agn --local-optimizer=add --local-lr=1", "gradients");
}

Test(row, what_has_no_effect_is_refused)
{
    expect_refused("--algorithm=hogwild --local-optimizer=sgd --local-lr=1", "--window");
    expect_refused("--algorithm=ssgd --local-lr=1", "--local-lr");
    expect_refused("--algorithm=ssgd --window-reduction=sum", "--window");
    expect_refused("--algorithm=local --server-optimizer=adam --lr=1", "--server-optimizer");
    expect_refused("--algorithm=local --local-lr=1", "--local-lr");
    expect_refused("--algorithm=local --window=3 --window-reduction=sum", "--window-reduction");
    expect_refused("--algorithm=local --placement=greedy", "--placement");
}

Test(row, reductions_of_rounds_and_windows_are_told_apart)
{
    expect_refused("--algorithm=agn --reduce=mean", "--window-reduction");
    expect_refused("--algorithm=hogwild --reduce=sum", "--reduce");
    expect_refused("--algorithm=sagn --reduce=sum --window-reduction=sum", "--reduce");
}

Test(row, hogwild_has_no_rounds)
{
    expect_refused("--algorithm=hogwild --aggregate=1", "--aggregate");
    expect_refused("--algorithm=hogwild --round-timeout=5s", "--round-timeout");
    expect_refused("--algorithm=hogwild --lr-per-rank=1,1", "--lr-per-rank");
}

static double
rate_of(const char *options, uint64_t rank)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, options), DT_OK, "%s", err.text);
    cr_expect_float_eq(settings_lr(&s), 1, 0, "psd's rate is 1");
    cr_expect_str_eq(settings_reduce(&s), "sum");
    s.rank = rank;
    double rate = settings_rank_lr(&s);
    dt_options_deinit(settings_run, &s);
    return rate;
}

Test(row, each_rank_has_its_rate)
{
    const char *given = "--algorithm=ssgd-diff-lr --workers=2 --lr-per-rank=0.5,1e-4";
    double own = algorithm_find("ssgd-diff-lr")->lr;

    cr_expect_float_eq(rate_of(given, 0), 0.5, 0);
    cr_expect_float_eq(rate_of(given, 1), 1e-4, 0);
    cr_expect_float_eq(rate_of(given, 2), own / 2, 1e-15, "a late rank");
    cr_expect_float_eq(rate_of("--algorithm=ssgd-diff-lr --workers=4", 3), own / 4, 1e-15);
}

Test(row, rates_of_ranks_are_one_a_worker_and_above_0)
{
    expect_refused("--algorithm=ssgd-diff-lr --workers=3 --lr-per-rank=1,1", "2 rates");
    expect_refused("--algorithm=ssgd-diff-lr --workers=1 --lr-per-rank=1,1", "2 rates");
    expect_refused("--algorithm=ssgd-diff-lr --lr-per-rank=1,0", "rank 1");
    expect_refused("--algorithm=ssgd-diff-lr --lr-per-rank=-1,1", "rank 0");
    expect_refused("--algorithm=ssgd-diff-lr --lr-per-rank=nan,1", "rank 0");
    expect_refused("--algorithm=ssgd-diff-lr --lr-per-rank=1,1e60", "rank 1");
    expect_refused("--algorithm=ssgd-diff-lr --lr-per-rank=1,1e-60", "rank 1");
    expect_refused("--algorithm=ssgd --lr-per-rank=1,1", "ssgd-diff-lr");
}

Test(row, ssgd_diff_lr_has_no_other_rate_rule_or_reduction)
{
    expect_refused("--algorithm=ssgd-diff-lr --lr=0.1", "--lr-per-rank");
    expect_refused("--algorithm=ssgd-diff-lr --reduce=mean", "sum");
    expect_refused("--algorithm=ssgd-diff-lr --server-optimizer=adam", "sgd");
    expect_refused("--algorithm=ssgd-diff-lr --window=2", "--window");
    expect_refused("--algorithm=ssgd-diff-lr --local-optimizer=sgd --local-lr=1",
                   "--local-optimizer");
}

Test(row, a_profile_takes_the_published_variant)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=downpour --profile=dist-keras --window=2"), DT_OK,
                 "%s", err.text);
    struct algorithm row = settings_row(&s);
    cr_expect_eq(row.order, ORDER_FIRST);
    cr_expect_eq(row.exchange, EXCHANGE_DELTA);
    cr_expect_eq(row.window, 2, "an option goes before what the profile fixes");
    cr_expect_str_eq(row.server_optimizer, "add");
    dt_options_deinit(settings_run, &s);
    expect_refused("--algorithm=easgd --profile=guide", "use paper");
    expect_refused("--algorithm=agn --profile=paper", "use guide or dist-keras");
    expect_refused("--algorithm=local --profile=paper", "leave it out");
}

Test(row, alpha_is_the_workers_share_unless_given)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=easgd --workers=3"), DT_OK, "%s", err.text);
    cr_expect_float_eq(settings_alpha(&s), 0.3, 1e-9);
    cr_expect_str_eq(settings_reduce(&s), "sum");
    dt_options_deinit(settings_run, &s);
    cr_assert_eq(parse(&s, &err, "--algorithm=aeasgd --profile=dist-keras"), DT_OK, "%s", err.text);
    cr_expect_float_eq(settings_alpha(&s), 0.5, 1e-9);
    dt_options_deinit(settings_run, &s);
    cr_assert_eq(parse(&s, &err, "--algorithm=eamsgd --alpha=0.25 --momentum=0"), DT_OK, "%s",
                 err.text);
    cr_expect_float_eq(settings_alpha(&s), 0.25, 1e-9);
    cr_expect_float_eq(settings_momentum(&s), 0, 0);
    dt_options_deinit(settings_run, &s);
}

Test(row, elastic_rows_and_deltas_refuse_what_has_no_meaning_there)
{
    expect_refused("--algorithm=dynsgd --alpha=0.5", "easgd");
    expect_refused("--algorithm=agn --momentum=0.5", "eamsgd");
    expect_refused("--algorithm=aeasgd --momentum=0.5", "eamsgd");
    expect_refused("--algorithm=eamsgd --momentum=1", "below 1");
    expect_refused("--algorithm=eamsgd --momentum=-0.5", "from 0");
    expect_refused("--algorithm=aeasgd --alpha=1", "below 1");
    expect_refused("--algorithm=aeasgd --alpha=1e-60", "above 0");
    expect_refused("--algorithm=easgd --alpha=0.5 --workers=3", "1 / workers");
    expect_refused("--algorithm=easgd --reduce=mean", "sum of the moves");
    expect_refused("--algorithm=easgd --aggregate=1", "lost to the centre");
    expect_refused("--algorithm=aeasgd --max-staleness=3", "--max-staleness");
    expect_refused("--algorithm=aeasgd --overlap", "--overlap");
    expect_refused("--algorithm=aeasgd --window-reduction=sum", "elastic move");
    expect_refused("--algorithm=eamsgd --local-optimizer=adam", "--momentum");
    expect_refused("--algorithm=easgd --local-lr=1", "--lr");
    expect_refused("--algorithm=dynsgd --server-optimizer=sgd", "--local-optimizer");
    expect_refused("--algorithm=dynsgd --local-optimizer=adam", "--lr");
    expect_refused("--algorithm=agn --profile=dist-keras --local-lr=1", "--lr");
}

/* 0 or -1 is "the algorithm's own", as --help says. */
Test(row, what_stands_for_the_algorithms_own_is_taken)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=eamsgd --alpha=0 --momentum=-1 --lr=0 --window=0"),
                 DT_OK, "%s", err.text);
    cr_expect_float_eq(settings_alpha(&s), 0.45, 1e-9);
    cr_expect_float_eq(settings_momentum(&s), 0.9, 1e-9);
    cr_expect_eq(settings_window(&s), 10);
    dt_options_deinit(settings_run, &s);
}

/* Every algorithm with every option that only some have, at the value that is its default: taken where it is of use,
 * else refused in one wording, whatever the value. */
static void
expect_use(const char *option, const char *value, const char *algorithms)
{
    const struct algorithm *a;
    char name[24], options[96], words[96];
    struct settings s;

    for (unsigned i = 0; (a = algorithm_at(i)) != NULL; i++) {
        struct dt_error err = {DT_OK, ""};
        snprintf(name, sizeof(name), " %s ", a->name);
        snprintf(options, sizeof(options), "--algorithm=%s --%s=%s", a->name, option, value);
        snprintf(words, sizeof(words), "--%s does nothing with --algorithm %s: ", option, a->name);
        enum dt_status r = parse(&s, &err, options);
        if (strstr(algorithms, name))
            cr_expect_eq(r, DT_OK, "%s: %s", options, err.text);
        else
            cr_expect(r == DT_E_USAGE && strstr(err.text, words) == err.text, "%s: '%s'", options,
                      err.text);
        dt_options_deinit(settings_run, &s);
    }
}

#define SYNC " ssgd ssgd-diff-lr sagn easgd "
#define WINDOWS " sagn downpour downpour-easy agn "
#define ASYNC " hogwild downpour downpour-easy agn dynsgd ssp "

Test(row, an_option_without_use_is_refused_with_any_value)
{
    expect_use("alpha", "0", " easgd aeasgd eamsgd ");
    expect_use("momentum", "-1", " eamsgd ");
    expect_use("staleness-bound", "0", " ssp ");
    expect_use("max-staleness", "-1", ASYNC);
    expect_use("wait-for-step", "0", ASYNC " aeasgd eamsgd ");
    expect_use("locking", "own", ASYNC " aeasgd eamsgd ");
    expect_use("aggregate", "0", SYNC);
    expect_use("round-timeout", "0", SYNC);
    expect_use("reduce", "mean", " ssgd sagn ");
    expect_use("lr-per-rank", "1,1", " ssgd-diff-lr ");
    expect_use("lr", "0", ASYNC " ssgd sagn easgd aeasgd eamsgd local ");
    expect_use("local-lr", "0", WINDOWS);
    expect_use("window", "0", ASYNC " ssgd sagn easgd aeasgd eamsgd ");
    expect_use("window-reduction", "own", WINDOWS " dynsgd ");
}

Test(row, a_rate_of_local_steps_that_the_pull_replaces_does_nothing)
{
    expect_refused("--algorithm=agn --window=1 --local-lr=0.1", "window of one batch");
    expect_refused("--algorithm=agn --window=1 --local-optimizer=sgd --local-lr=0.1",
                   "window of one batch");
}

/* A window of T begins (easgd, aeasgd, eamsgd) or ends (as dist-keras has it, the first one after T - 1) with a
 * meeting. */
static void
expect_meetings(const char *options, uint64_t steps, uint64_t meetings)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};
    char text[256] = "";

    cr_assert_eq(parse(&s, &err, options), DT_OK, "%s", err.text);
    struct algorithm row = settings_row(&s);
    cr_expect_eq(elastic_meetings(&row, steps), meetings, "%s, %llu steps: %llu", options,
                 (unsigned long long)steps, (unsigned long long)elastic_meetings(&row, steps));
    cr_expect_eq(elastic_is_short(&row, steps, text, sizeof(text)), meetings < 2, "%s", text);
    dt_options_deinit(settings_run, &s);
}

Test(row, a_run_with_one_meeting_is_short)
{
    const char *first = "--algorithm=aeasgd --profile=dist-keras --window=4";
    const char *each = "--algorithm=aeasgd --profile=dist-keras --window=1";

    expect_meetings("--algorithm=aeasgd", 10, 1);
    expect_meetings("--algorithm=aeasgd", 11, 2);
    expect_meetings("--algorithm=eamsgd --window=4", 4, 1);
    expect_meetings("--algorithm=eamsgd --window=4", 5, 2);
    expect_meetings("--algorithm=easgd", 1, 1);
    expect_meetings("--algorithm=easgd", 2, 2);
    expect_meetings(first, 3, 1);
    expect_meetings(first, 4, 2);
    expect_meetings(first, 7, 2);
    expect_meetings(first, 8, 3);
    expect_meetings(each, 1, 1);
    expect_meetings(each, 2, 2);
}

Test(row, a_short_run_is_told_with_its_numbers)
{
    struct algorithm row = *algorithm_find("aeasgd");
    char text[256] = "";

    cr_expect(elastic_is_short(&row, 5, text, sizeof(text)));
    cr_expect_str_eq(text, "aeasgd meets the centre every 10 batches (--window), once in the 5 "
                           "steps of this run, before its first update: nothing that it learns "
                           "reaches the centre: use a smaller --window, or more --steps or "
                           "--epochs");
    cr_expect_not(elastic_is_short(algorithm_find("agn"), 1, text, sizeof(text)),
                  "a last window may be shorter");
}

Test(row, more_batches_a_round_than_workers)
{
    struct settings s;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(parse(&s, &err, "--algorithm=ssgd --workers=2 --aggregate=5 --replicas=3"), DT_OK,
                 "%s", err.text);
    cr_expect_eq(settings_parts(&s), 15);
    dt_options_deinit(settings_run, &s);
    expect_refused("--algorithm=sagn --workers=2 --aggregate=5", "local steps");
    expect_refused("--algorithm=ssgd-diff-lr --workers=2 --aggregate=5", "at its rate");
    expect_refused("--algorithm=local --aggregate=5", "trains alone");
    expect_refused("--algorithm=ssgd --workers=2 --aggregate=5 --overlap", "--overlap");
    expect_refused("--algorithm=easgd --workers=2 --aggregate=5", "lost to the centre");
}
