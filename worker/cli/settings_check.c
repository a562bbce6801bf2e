/*
 * settings_check.c - which options of train and run go together. unused.c has what does nothing with an algorithm,
 * row.c what concerns its row, pins.c the pins of variables.
 *
 * Invariant: what is refused here is refused before any file or socket is opened. Threads: main alone.
 */
#include "worker/cli/settings.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/plural.h"
#include "proto/net/context.h"
#include "worker/cli/elastic.h"
#include "worker/cli/pins.h"
#include "worker/cli/record_header.h"
#include "worker/cli/row.h"
#include "worker/cli/same_file.h"
#include "worker/cli/unused.h"
#include "worker/train/model.h"

enum { ON_LOSS_SHRINK, ON_LOSS_FAIL }; /* --on-loss */

static bool
is_toy(const struct settings *s)
{
    return strcmp(s->model, "toy") == 0;
}

static enum dt_status
unknown_algorithm(const struct settings *s, struct dt_error *err)
{
    char known[256] = "";
    size_t used = 0;

    for (unsigned i = 0; algorithm_at(i) && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                 algorithm_at(i)->name);
    return dt_fail(err, DT_E_USAGE, "--algorithm %s is unknown: use one of %s", s->algorithm,
                   known);
}

/* The algorithm has no such variant. */
static enum dt_status
unknown_profile(const struct settings *s, struct dt_error *err)
{
    char known[64] = "";
    size_t used = 0;

    for (unsigned i = 0; i < ALGORITHM_N_PROFILES; i++) {
        if (algorithm_find_profile(s->algorithm, 1u << i))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? " or " : "",
                                     algorithm_profile_name(1u << i));
    }
    return dt_fail(err, DT_E_USAGE, "--profile %s: %s has no such variant: %s%s",
                   algorithm_profile_name(1u << (s->profile - 1)), s->algorithm,
                   used ? "use " : "leave it out", known);
}

/* What would do harm; unused.c has what does nothing. */
static enum dt_status
check_waiting(const struct settings *s, struct dt_error *err)
{
    if (settings_algorithm(s)->consistency == CONSISTENCY_SSP && s->wait_for_step > 0)
        return dt_fail(err, DT_E_USAGE,
                       "--wait-for-step: in ssp the others would wait for this worker: leave it "
                       "out");
    return DT_OK;
}

/* Whatever would let bits depend on time, or on a machine. psd compares the kernels of the workers. */
static enum dt_status
check_deterministic(const struct settings *s, const struct dt_option *table, struct dt_error *err)
{
    if (!s->deterministic)
        return DT_OK;
    if (settings_algorithm(s)->consistency == CONSISTENCY_LOCAL)
        return dt_fail(err, DT_E_USAGE,
                       "--deterministic: one process has no order of workers; with --threads 1 it "
                       "repeats itself anyway");
    if (settings_algorithm(s)->consistency != CONSISTENCY_SYNC)
        return dt_fail(err, DT_E_USAGE,
                       "--deterministic: updates of %s come in any order: use a synchronous "
                       "algorithm",
                       s->algorithm);
    if (s->aggregate > 0 && s->aggregate < s->workers)
        return dt_fail(err, DT_E_USAGE,
                       "--deterministic: --aggregate %llu of %llu workers drops whoever is late: "
                       "leave it out",
                       (unsigned long long)s->aggregate, (unsigned long long)s->workers);
    if (s->on_loss == ON_LOSS_SHRINK && dt_options_given(table, s, "on-loss"))
        return dt_fail(err, DT_E_USAGE,
                       "--deterministic: --on-loss shrink goes on with other sums: use fail");
    if (s->threads > 1)
        return dt_fail(err, DT_E_USAGE,
                       "--deterministic: the BLAS library gives other bits with other numbers of "
                       "threads: leave --threads out, it is 1");
    if (s->rank >= s->workers)
        return dt_fail(err, DT_E_USAGE,
                       "--deterministic: rank %llu of %llu would join late, and when depends on "
                       "time",
                       (unsigned long long)s->rank, (unsigned long long)s->workers);
    return DT_OK;
}

/* --aggregate above --workers: some compute several batches at the same values. */
static enum dt_status
check_shares(const struct settings *s, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);
    const char *why = NULL;

    if (a->has_rank_rates)
        why = "takes one gradient of each worker, at its rate";
    else if (settings_window(s) > 1)
        why = "takes local steps: its batches are not at the same values";
    else if (s->overlap)
        why = "has the mean of several batches only when all are done: leave --overlap out, too";
    if (!why)
        return DT_OK;
    return dt_fail(err, DT_E_USAGE,
                   "--aggregate %llu is more than the %llu worker%s, and %s %s: use at most "
                   "--workers",
                   (unsigned long long)s->aggregate, (unsigned long long)s->workers,
                   dt_plural(s->workers), a->name, why);
}

static enum dt_status
check_outputs(const struct settings *s, struct dt_error *err)
{
    if (s->save && s->metrics && same_file(s->save, s->metrics))
        return dt_fail(err, DT_E_USAGE,
                       "--save and --metrics name the same file, %s: give each its own", s->save);
    return DT_OK;
}

/* `table`: of the command whose options `s` holds. */
static enum dt_status
check_training(const struct settings *s, const struct dt_option *table, unsigned n_ps,
               struct dt_error *err)
{
    enum dt_status r;

    if (!algorithm_find(s->algorithm))
        return unknown_algorithm(s, err);
    if (!settings_algorithm(s))
        return unknown_profile(s, err);
    if (model_check_spec(s->model, err) != DT_OK)
        return DT_E_USAGE;
    if (!is_toy(s) && !s->data)
        return dt_fail(err, DT_E_USAGE, "--model %s needs data: name them with --data PATH",
                       s->model);
    if (is_toy(s) && (s->data || s->label || dt_options_given(table, s, "header")))
        return dt_fail(err, DT_E_USAGE,
                       "--model toy reads no data: leave --data, --label and --header out");
    if (is_toy(s) && (s->epochs > 0 || dt_options_given(table, s, "batch")))
        return dt_fail(err, DT_E_USAGE,
                       "--model toy has no rows: leave --epochs and --batch out, and say how long "
                       "with --steps");
    if ((is_toy(s) || model_target(s->model) == DATASET_NUMBERS) &&
        dt_options_given(table, s, "target-accuracy"))
        return dt_fail(err, DT_E_USAGE, "--model %s has no accuracy: leave --target-accuracy out",
                       s->model);
    if (s->overlap && s->replicas > 1)
        return dt_fail(err, DT_E_USAGE,
                       "--overlap: the mean of several replicas is there only when all are done: "
                       "leave it or --replicas out");
    r = check_outputs(s, err);
    if (r == DT_OK)
        r = unused_check(s, table, err);
    if (r == DT_OK)
        r = check_waiting(s, err);
    if (r == DT_OK)
        r = check_deterministic(s, table, err);
    if (r == DT_OK)
        r = elastic_check(s, err);
    if (r == DT_OK)
        r = record_check_options(s, err);
    if (r == DT_OK)
        r = row_check(s, err);
    if (r == DT_OK && s->aggregate > s->workers)
        r = check_shares(s, err);
    return r == DT_OK ? pins_check(s, table, n_ps, err) : r;
}

static enum dt_status
check_local(const struct settings *s, struct dt_error *err)
{
    if (s->workers > 1)
        return dt_fail(err, DT_E_USAGE,
                       "--algorithm local trains in one process: leave --workers out");
    if (s->rank > 0)
        return dt_fail(err, DT_E_USAGE,
                       "--algorithm local trains in one process: leave --rank out");
    return DT_OK;
}

static enum dt_status
check_endpoints(const struct settings *s, struct dt_error *err)
{
    struct dt_error why;
    char *const *ps, *const *other;

    for (ps = s->ps; *ps; ps++) {
        if (dt_endpoint_check(*ps, &why) != DT_OK)
            return dt_fail(err, DT_E_USAGE, "--ps: %s", why.text);
        for (other = s->ps; other < ps; other++) {
            if (dt_endpoint_is_same(*other, *ps))
                return dt_fail(err, DT_E_USAGE, "--ps names %s twice: each psd is one ps task",
                               *ps);
        }
    }
    return DT_OK;
}

enum dt_status
settings_check_train(const struct settings *s, struct dt_error *err)
{
    enum dt_status r = check_training(s, settings_train, settings_n_ps(s), err);

    if (r != DT_OK)
        return r;
    if (!algorithm_needs_ps(settings_algorithm(s)))
        return check_local(s, err);
    if (settings_n_ps(s) == 0)
        return dt_fail(err, DT_E_USAGE,
                       "--algorithm %s needs psd: name it with --ps, or use dtworker run",
                       s->algorithm);
    if (!s->job || !s->job[0])
        return dt_fail(err, DT_E_USAGE, "which job? name it with --job");
    r = check_endpoints(s, err);
    if (r != DT_OK)
        return r;
    if (s->workers > 1 && !dt_options_given(settings_train, s, "rank"))
        return dt_fail(err, DT_E_USAGE, "which of the %llu workers is this? name it with --rank",
                       (unsigned long long)s->workers);
    return DT_OK;
}

enum dt_status
settings_check_run(struct settings *s, struct dt_error *err)
{
    uint64_t ms = 0;
    enum dt_status r;

    if (settings_algorithm(s) && !algorithm_needs_ps(settings_algorithm(s)) &&
        !dt_options_given(settings_run, s, "workers"))
        s->workers = 1;
    r = check_training(s, settings_run, (unsigned)s->ps_tasks, err);
    if (r == DT_OK && !algorithm_needs_ps(settings_algorithm(s)))
        r = check_local(s, err);
    for (unsigned rank = 0; r == DT_OK && rank < s->workers; rank++)
        r = settings_step_delay(s, rank, &ms, err);
    return r;
}
