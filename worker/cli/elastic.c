/*
 * elastic.c - what goes with elastic averaging, and what cannot. Threads: main alone.
 */
#include "worker/cli/elastic.h"

#include <math.h>

/* Options that only elastic rows have. */
static enum dt_status
check_foreign(const struct settings *s, const struct dt_option *table, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);

    if (!algorithm_is_elastic(a) && dt_options_given(table, s, "alpha"))
        return dt_fail(err, DT_E_USAGE,
                       "--alpha: %s has no centre that workers are drawn to: use easgd, aeasgd or "
                       "eamsgd",
                       a->name);
    if (a->lookahead == LOOKAHEAD_NONE && dt_options_given(table, s, "momentum"))
        return dt_fail(err, DT_E_USAGE,
                       "--momentum belongs to eamsgd: for %s name an optimizer that has it, with "
                       "--local-optimizer or --server-optimizer",
                       a->name);
    return DT_OK;
}

static enum dt_status
check_sizes(const struct settings *s, const struct dt_option *table, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);
    uint64_t members =
        s->rank < s->workers ? s->workers : s->rank + 1; /* a late rank is one more */
    double together = settings_alpha(s) * (double)members;

    if (dt_options_given(table, s, "alpha") && !((float)s->alpha > 0 && s->alpha < 1))
        return dt_fail(err, DT_E_USAGE, "--alpha %g: give a number above 0 and below 1", s->alpha);
    if (dt_options_given(table, s, "momentum") && !(s->momentum >= 0 && (float)s->momentum < 1))
        return dt_fail(err, DT_E_USAGE, "--momentum %g: give a number from 0 to below 1",
                       s->momentum);
    if (a->consistency == CONSISTENCY_SYNC && together > 1)
        return dt_fail(err, DT_E_USAGE,
                       "--alpha %g of %llu workers moves the centre by %g times its distance in a "
                       "round: use at most 1 / workers%s",
                       settings_alpha(s), (unsigned long long)members, together,
                       members > s->workers ? ", of all that may join" : "");
    return DT_OK;
}

static enum dt_status
check_rounds(const struct settings *s, const struct dt_option *table, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);

    if (a->consistency == CONSISTENCY_SYNC && dt_options_given(table, s, "reduce"))
        return dt_fail(err, DT_E_USAGE,
                       "--reduce: a round of %s is always the sum of the moves: leave it out",
                       a->name);
    if (s->aggregate > 0)
        return dt_fail(err, DT_E_USAGE,
                       "--aggregate: a move of %s that came too late would be lost to the centre: "
                       "leave it out",
                       a->name);
    if (s->max_staleness >= 0)
        return dt_fail(err, DT_E_USAGE,
                       "--max-staleness: %s pulls the centre just before it pushes: leave it out",
                       a->name);
    if (s->overlap)
        return dt_fail(err, DT_E_USAGE,
                       "--overlap: %s sends no gradients, but moves that it knows all at once: "
                       "leave it out",
                       a->name);
    return DT_OK;
}

enum dt_status
elastic_check(const struct settings *s, const struct dt_option *table, struct dt_error *err)
{
    enum dt_status r = check_foreign(s, table, err);

    if (r != DT_OK || !algorithm_is_elastic(settings_algorithm(s)))
        return r;
    r = check_sizes(s, table, err);
    return r == DT_OK ? check_rounds(s, table, err) : r;
}
