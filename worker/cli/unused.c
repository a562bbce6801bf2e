/*
 * unused.c - which option does nothing with which algorithm, and why: one table, one wording.
 *
 * Invariant: a row speaks of an option without looking at its value, so one that does nothing is refused with any
 * value, its default too. Threads: main alone.
 */
#include "worker/cli/unused.h"

#include "worker/cli/row.h"

static bool
trains_alone(const struct settings *s)
{
    return !algorithm_needs_ps(settings_algorithm(s));
}

static bool
is_async(const struct settings *s)
{
    return algorithm_is_async(settings_algorithm(s));
}

static bool
is_not_async(const struct settings *s)
{
    return !is_async(s);
}

static bool
is_not_ssp(const struct settings *s)
{
    return settings_algorithm(s)->consistency != CONSISTENCY_SSP;
}

static bool
is_elastic(const struct settings *s)
{
    return algorithm_is_elastic(settings_algorithm(s));
}

static bool
is_not_elastic(const struct settings *s)
{
    return !is_elastic(s);
}

static bool
looks_ahead(const struct settings *s)
{
    return settings_algorithm(s)->lookahead != LOOKAHEAD_NONE;
}

static bool
does_not_look_ahead(const struct settings *s)
{
    return !looks_ahead(s);
}

static bool
has_rank_rates(const struct settings *s)
{
    return settings_algorithm(s)->has_rank_rates;
}

static bool
has_no_rank_rates(const struct settings *s)
{
    return !has_rank_rates(s);
}

static bool
has_one_rate(const struct settings *s)
{
    return !algorithm_has_server_rate(settings_algorithm(s));
}

static bool
has_windows_of_one(const struct settings *s)
{
    return settings_window(s) == 1;
}

/* The values of such a step are replaced at once. */
static bool
pulls_after_each_batch(const struct settings *s)
{
    return !has_one_rate(s) && has_windows_of_one(s);
}

static bool
has_no_local_rule(const struct settings *s)
{
    return !settings_row(s).local_optimizer;
}

#define NO_PSD "it trains alone, without psd: leave it out"
#define NO_ROUNDS "it has no rounds: leave it out"
#define NOT_ASYNC "it is not asynchronous: leave it out"
#define ONE_GRADIENT "its round takes one gradient of each worker: leave it out"
#define PULL_REPLACES                                                                              \
    "in a window of one batch the pull replaces the local step: leave it out, or give --window T " \
    "above 1"

/* Of several rows of one option the first that holds says why. */
static const struct unused {
    const char *option;
    bool (*is_unused)(const struct settings *s);
    const char *why;
} table_of_unused[] = {
    {"ps", trains_alone, NO_PSD},
    {"ps-tasks", trains_alone, NO_PSD},
    {"job", trains_alone, NO_PSD},
    {"fresh", trains_alone, NO_PSD},
    {"start-timeout", trains_alone, NO_PSD},
    {"retry-for", trains_alone, NO_PSD},
    {"on-loss", trains_alone, NO_PSD},
    {"lease", trains_alone, NO_PSD},
    {"max-bad", trains_alone, NO_PSD},
    {"place", trains_alone, NO_PSD},
    {"placement", trains_alone, NO_PSD},
    {"partition", trains_alone, NO_PSD},
    {"aggregate", trains_alone, NO_PSD},
    {"aggregate", is_async, NO_ROUNDS},
    {"round-timeout", trains_alone, NO_PSD},
    {"round-timeout", is_async, NO_ROUNDS},
    {"reduce", trains_alone, NO_PSD},
    {"reduce", is_async,
     "it has no rounds: leave it out (over the gradients of a window: --window-reduction)"},
    {"reduce", is_elastic, "its round is always the sum of the moves: leave it out"},
    {"reduce", has_rank_rates, "its round is always the sum of lr_k * g_k: leave it out"},
    {"max-staleness", trains_alone, NO_PSD},
    {"max-staleness", is_not_async, NOT_ASYNC},
    {"max-staleness", is_elastic,
     "its workers pull the centre just before they push: leave it out"},
    {"wait-for-step", trains_alone, NO_PSD},
    {"wait-for-step", is_not_async, NOT_ASYNC},
    {"staleness-bound", is_not_ssp, "only ssp has a bound: leave it out"},
    {"locking", is_not_async, "no update is applied beside another: leave it out"},
    {"overlap", trains_alone, NO_PSD},
    {"overlap", is_elastic, "it pushes moves, which are known all at once: leave it out"},
    {"window-reduction", trains_alone, NO_PSD},
    {"window-reduction", is_elastic,
     "it pushes an elastic move, not what a window brought: leave it out"},
    {"window-reduction", has_rank_rates, ONE_GRADIENT},
    {"window-reduction", has_windows_of_one,
     "its window is one batch: leave it out, or give --window T above 1"},
    {"window", trains_alone, NO_PSD},
    {"window", has_rank_rates, ONE_GRADIENT},
    {"lr", has_rank_rates, "psd's rate is 1 and each worker has its own: use --lr-per-rank"},
    {"lr-per-rank", has_no_rank_rates,
     "only ssgd-diff-lr has a rate of each worker: leave it out, or use --lr"},
    {"local-optimizer", looks_ahead,
     "it has momentum of its own (--momentum), with the gradient at the point ahead: leave it out, "
     "or use aeasgd"},
    {"local-optimizer", has_rank_rates, ONE_GRADIENT},
    {"local-optimizer", pulls_after_each_batch, PULL_REPLACES},
    {"local-lr", has_one_rate, "it has one rate: use --lr"},
    {"local-lr", has_rank_rates, ONE_GRADIENT},
    {"local-lr", has_no_local_rule,
     "it has no local steps: leave it out, or name their rule with --local-optimizer"},
    {"local-lr", pulls_after_each_batch, PULL_REPLACES},
    {"server-optimizer", trains_alone,
     "it trains alone, without psd: leave it out, or use --local-optimizer"},
    {"server-optimizer", looks_ahead,
     "what its workers push is added as it is: leave it out, or see --momentum"},
    {"server-optimizer", has_one_rate,
     "what its workers push is added as it is: leave it out, or use --local-optimizer"},
    {"alpha", is_not_elastic,
     "it has no centre that workers are drawn to: leave it out, or use easgd, aeasgd or eamsgd"},
    {"momentum", does_not_look_ahead,
     "only eamsgd has momentum of its own: leave it out, or name a rule that has it with "
     "--local-optimizer or --server-optimizer"},
};
#define N_UNUSED (sizeof(table_of_unused) / sizeof(table_of_unused[0]))

enum dt_status
unused_check(const struct settings *s, const struct dt_option *table, struct dt_error *err)
{
    for (size_t i = 0; i < N_UNUSED; i++) {
        const struct unused *u = &table_of_unused[i];
        if (dt_options_given(table, s, u->option) && u->is_unused(s))
            return dt_fail(err, DT_E_USAGE, "--%s does nothing with --algorithm %s: %s", u->option,
                           s->algorithm, u->why);
    }
    return DT_OK;
}
