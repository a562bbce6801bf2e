/*
 * elastic.c - what goes with elastic averaging, and what cannot. Threads: main alone.
 */
#include "worker/cli/elastic.h"

#include <stdio.h>

#include "proto/base/plural.h"

static enum dt_status
check_sizes(const struct settings *s, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);
    uint64_t members =
        s->rank < s->workers ? s->workers : s->rank + 1; /* a late rank is one more */
    double together = settings_alpha(s) * (double)members;

    if (s->alpha != 0 && !((float)s->alpha > 0 && s->alpha < 1))
        return dt_fail(err, DT_E_USAGE, "--alpha %g: give a number above 0 and below 1", s->alpha);
    if (s->momentum != -1 && !(s->momentum >= 0 && (float)s->momentum < 1))
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
check_rounds(const struct settings *s, struct dt_error *err)
{
    const struct algorithm *a = settings_algorithm(s);

    if (s->aggregate > 0)
        return dt_fail(err, DT_E_USAGE,
                       "--aggregate: a move of %s that came too late would be lost to the centre: "
                       "leave it out",
                       a->name);
    return DT_OK;
}

enum dt_status
elastic_check(const struct settings *s, struct dt_error *err)
{
    if (!algorithm_is_elastic(settings_algorithm(s)))
        return DT_OK;
    enum dt_status r = check_sizes(s, err);
    return r == DT_OK ? check_rounds(s, err) : r;
}

uint64_t
elastic_meetings(const struct algorithm *row, uint64_t steps)
{
    uint64_t first = row->order == ORDER_FIRST ? row->window - 1 : 0;

    if (row->order == ORDER_WITHIN || first == 0) /* T == 1: the first window is none */
        return (steps + row->window - 1) / row->window;
    return steps <= first ? 1 : 1 + (steps - first + row->window - 1) / row->window;
}

bool
elastic_is_short(const struct algorithm *row, uint64_t steps, char *text, size_t size)
{
    if (!algorithm_is_elastic(row) || elastic_meetings(row, steps) > 1)
        return false;
    snprintf(text, size,
             "%s meets the centre every %u batch%s (--window), once in the %llu step%s of this "
             "run, %s: use %smore --steps or --epochs",
             row->name, row->window, row->window == 1 ? "" : "es", (unsigned long long)steps,
             dt_plural(steps),
             row->order == ORDER_WITHIN
                 ? "before its first update: nothing that it learns reaches the centre"
                 : "after its last update: the centre makes one move",
             row->window > 1 ? "a smaller --window, or " : "");
    return true;
}
