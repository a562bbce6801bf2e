/*
 * row.c - what --window, --window-reduction, the optimizers and --lr-per-rank make of an algorithm's row.
 *
 * Invariant: a rate of the table of algorithms is used with the row's own rules alone. Threads: main alone.
 */
#include "worker/cli/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"
#include "proto/base/plural.h"
#include "psd/optim/optimizer.h"
#include "worker/cli/extras.h"

enum { WINDOW_OWN, WINDOW_MEAN, WINDOW_SUM }; /* --window-reduction */
enum { LOCKING_OWN };                         /* --locking; then enum algorithm_locking */
enum { REDUCE_SUM = 2 };                      /* --reduce */

struct algorithm
settings_row(const struct settings *s)
{
    struct algorithm row = *settings_algorithm(s);

    row.window = settings_window(s);
    if (s->window_reduction != WINDOW_OWN)
        row.reduction = s->window_reduction == WINDOW_SUM ? REDUCTION_SUM : REDUCTION_MEAN;
    if (s->locking != LOCKING_OWN)
        row.locking = (enum algorithm_locking)(s->locking - 1);
    if (s->local_optimizer)
        row.local_optimizer = s->local_optimizer;
    if (s->server_optimizer)
        row.server_optimizer = s->server_optimizer;
    return row;
}

/* Finite and above 0, as the float32 that it becomes, too. */
static bool
parse_rate(const char *text, double *rate)
{
    return dt_parse_double(text, rate) && (float)*rate > 0 && isfinite((float)*rate);
}

double
settings_rank_lr(const struct settings *s)
{
    double rate = settings_algorithm(s)->lr / (double)s->workers;

    if (!settings_algorithm(s)->has_rank_rates)
        return 0;
    if (s->rank < settings_count(s->lr_per_rank))
        parse_rate(s->lr_per_rank[s->rank], &rate);
    return rate;
}

/* The rules that follow a gradient: "sgd, momentum, ...". */
static const char *
list_rules(char *out, size_t size)
{
    size_t used = 0;
    const char *name;

    out[0] = '\0';
    for (unsigned i = 0; (name = optimizer_name_at(i)) != NULL && used < size; i++) {
        if (optimizer_has_rate(name))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
    }
    return out;
}

/* `name` of --`option` in place of the row's `own` rule (NULL: it has none there); its rate comes by --`rate`. */
static enum dt_status
check_optimizer(const struct settings *s, const char *option, const char *name, const char *own,
                const char *rate, bool has_rate, struct dt_error *err)
{
    char rules[128];

    if (!optimizer_is_known(name))
        return dt_fail(err, DT_E_USAGE, "--%s %.64s is unknown: use one of %s", option, name,
                       list_rules(rules, sizeof(rules)));
    if (!optimizer_has_rate(name))
        return dt_fail(err, DT_E_USAGE,
                       "--%s %s takes what is pushed for the change itself, and dtworker pushes "
                       "gradients: use one of %s",
                       option, name, list_rules(rules, sizeof(rules)));
    if (own && strcmp(own, name) == 0)
        return DT_OK;
    if (has_rate)
        return DT_OK;
    return own ? dt_fail(err, DT_E_USAGE,
                         "--%s %s needs its rate, --%s: the default of %s belongs to its own %s",
                         option, name, rate, s->algorithm, own)
               : dt_fail(err, DT_E_USAGE, "--%s %s needs its rate: give --%s", option, name, rate);
}

static enum dt_status
check_server(const struct settings *s, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);

    if (!s->server_optimizer)
        return DT_OK;
    if (a->has_rank_rates && strcmp(s->server_optimizer, a->server_optimizer) != 0)
        return dt_fail(err, DT_E_USAGE,
                       "--server-optimizer %.64s: with %s the rates are in the gradients, and only "
                       "%s is linear in them",
                       s->server_optimizer, a->name, a->server_optimizer);
    if (settings_row(s).locking == LOCKING_NONE && optimizer_is_known(s->server_optimizer) &&
        !optimizer_can_race(s->server_optimizer))
        return dt_fail(
            err, DT_E_USAGE,
            "--server-optimizer %.64s needs updates that exclude each other, and those of "
            "%s do not",
            s->server_optimizer, a->name);
    return check_optimizer(s, "server-optimizer", s->server_optimizer, a->server_optimizer, "lr",
                           s->lr > 0, err);
}

static enum dt_status
check_local_rule(const struct settings *s, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);
    bool two_rates = algorithm_has_server_rate(a);

    if (!s->local_optimizer)
        return DT_OK;
    return check_optimizer(s, "local-optimizer", s->local_optimizer, a->local_optimizer,
                           two_rates ? "local-lr" : "lr", (two_rates ? s->local_lr : s->lr) > 0,
                           err);
}

static enum dt_status
check_reductions(const struct settings *s, struct dt_error *err)
{
    if (s->window_reduction == WINDOW_SUM && s->reduce == REDUCE_SUM)
        return dt_fail(err, DT_E_USAGE,
                       "--reduce sum counts each push by its batches: with --window-reduction sum "
                       "every gradient would count T times");
    return DT_OK;
}

static enum dt_status
check_list(const struct settings *s, struct dt_error *err)
{
    unsigned n = settings_count(s->lr_per_rank);
    double rate;

    if (n != s->workers)
        return dt_fail(err, DT_E_USAGE,
                       "--lr-per-rank has %u rate%s for %llu worker%s: give one a rank", n,
                       dt_plural(n), (unsigned long long)s->workers, dt_plural(s->workers));
    for (unsigned i = 0; i < n; i++) {
        if (!parse_rate(s->lr_per_rank[i], &rate))
            return dt_fail(err, DT_E_USAGE,
                           "--lr-per-rank: '%.64s' of rank %u is no number above 0",
                           s->lr_per_rank[i], i);
    }
    return DT_OK;
}

static enum dt_status
check_locking(const struct settings *s, struct dt_error *err)
{
    const struct algorithm row = settings_row(s);

    if (s->locking == LOCKING_OWN || row.locking != LOCKING_NONE)
        return DT_OK;
    if (row.consistency == CONSISTENCY_SSP)
        return dt_fail(err, DT_E_USAGE,
                       "--locking none: %s promises which updates a pull holds: use slice or "
                       "variable",
                       row.name);
    if (!optimizer_can_race(row.server_optimizer))
        return dt_fail(err, DT_E_USAGE,
                       "--locking none: %.64s on psd needs updates that exclude each other",
                       row.server_optimizer);
    return DT_OK;
}

enum dt_status
row_check(const struct settings *s, struct dt_error *err)
{
    enum dt_status r = s->lr_per_rank ? check_list(s, err) : DT_OK;

    if (r == DT_OK)
        r = check_reductions(s, err);
    if (r == DT_OK)
        r = check_server(s, err);
    if (r == DT_OK)
        r = check_local_rule(s, err);
    if (r == DT_OK)
        r = check_locking(s, err);
    return r == DT_OK ? extras_check(s, err) : r;
}
