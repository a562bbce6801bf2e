/*
 * compare_advice.c - which algorithm to choose, by what was measured. Threads: main alone.
 *
 * local is the yardstick and never an answer. What was not measured is not answered, but for one thing: a round of
 * all members is the same update whatever the machines do, so without repetitions the synchronous rows stand for
 * what can be repeated.
 */
#include <math.h>

#include "worker/cli/compare.h"

#define TOLERATED 0.01 /* of accuracy, beside a slow worker */
#define NEARLY 1.1     /* times which differ by less are the same: then the better loss counts */
#define ROUNDING 1e-3  /* losses which differ by less are the same: then the first of the table */

static const struct compare_entry *
least(const struct compare *c,
      double (*figure)(const struct compare *, const struct compare_entry *))
{
    const struct compare_entry *best = NULL;
    double least = INFINITY;

    for (unsigned i = 1; i < c->n_entries; i++) {
        double x = figure(c, &c->entries[i]);
        if (isfinite(x) && x < least) {
            least = x;
            best = &c->entries[i];
        }
    }
    return best;
}

static bool
is_sync(const struct compare_entry *e)
{
    return e->algorithm->consistency == CONSISTENCY_SYNC;
}

static double
spread_of(const struct compare *c, const struct compare_entry *e)
{
    (void)c;
    return e->n_runs > 1 ? e->most_loss - e->least_loss : (double)NAN;
}

/* Of the synchronous ones that of the best loss. */
static const struct compare_entry *
best_sync(const struct compare *c)
{
    const struct compare_entry *best = NULL;

    for (unsigned i = 1; i < c->n_entries; i++) {
        const struct compare_entry *e = &c->entries[i];
        if (e->even.done && is_sync(e) &&
            (!best || e->even.report.train_loss < best->even.report.train_loss * (1 - ROUNDING)))
            best = e;
    }
    return best;
}

static void
advise_reproducible(const struct compare *c, struct advice *a)
{
    a->question = "most reproducible";
    if (c->s->repeat > 1) {
        a->answer = least(c, spread_of);
        if (a->answer)
            snprintf(a->why, sizeof(a->why), "the losses of %u runs differ by %.2g",
                     a->answer->n_runs, spread_of(c, a->answer));
        else
            snprintf(a->why, sizeof(a->why), "not known: no algorithm came to its end twice");
        return;
    }
    a->answer = best_sync(c);
    if (!a->answer)
        snprintf(a->why, sizeof(a->why),
                 "not measured, and none of these is synchronous: --repeat 3 measures it");
    else if (c->s->deterministic)
        snprintf(a->why, sizeof(a->why), "--deterministic: the same bits in every run");
    else
        snprintf(a->why, sizeof(a->why),
                 "a round of all workers is the same update whatever the machines do (with "
                 "--deterministic to the bit); not measured (--repeat 3 does)");
}

static double
to_target(const struct compare *c, const struct compare_entry *e)
{
    const struct compare_run *r = c->s->slow ? &e->slowed : &e->even;

    return r->done ? curve_seconds_to(&r->curve, c->target) : (double)NAN;
}

static double
to_end(const struct compare *c, const struct compare_entry *e)
{
    const struct compare_run *r = c->s->slow ? &e->slowed : &e->even;

    return r->done ? r->report.seconds : (double)NAN;
}

static void
advise_fast(const struct compare *c, struct advice *a)
{
    const char *beside = c->s->slow ? ", beside the slow worker" : "";

    a->question = "fastest to target";
    if (!isfinite(c->target)) {
        a->answer = least(c, to_end);
        if (a->answer)
            snprintf(
                a->why, sizeof(a->why), "%.2f s to its end%s (%s)", to_end(c, a->answer), beside,
                compare_has_accuracy(c) ? "local failed, so no accuracy to aim at: give --target"
                                        : "the model has no accuracy to aim at");
    } else {
        a->answer = least(c, to_target);
        if (a->answer)
            snprintf(a->why, sizeof(a->why), "accuracy %.4f after %.2f s%s", c->target,
                     to_target(c, a->answer), beside);
    }
    if (!a->answer)
        snprintf(a->why, sizeof(a->why), "none came to it: train longer, or lower --target");
}

/* How much longer the others take, unless the accuracy suffers or is not worth it. */
static double
harm(const struct compare *c, const struct compare_entry *e)
{
    const struct report *even = &e->even.report, *slowed = &e->slowed.report;

    if (isfinite(even->test_accuracy) && slowed->test_accuracy < even->test_accuracy - TOLERATED)
        return NAN;
    if (isfinite(c->target) && !isfinite(curve_seconds_to(&e->slowed.curve, c->target)))
        return NAN;
    return compare_growth(e);
}

/* Of those that take about as long as the best the one of the best loss. */
static const struct compare_entry *
most_tolerant(const struct compare *c)
{
    const struct compare_entry *first = least(c, harm), *best = first;

    for (unsigned i = 1; first && i < c->n_entries; i++) {
        const struct compare_entry *e = &c->entries[i];
        double x = harm(c, e);
        if (isfinite(x) && x < compare_growth(first) * NEARLY &&
            e->slowed.report.train_loss < best->slowed.report.train_loss)
            best = e;
    }
    return best;
}

static void
advise_tolerant(const struct compare *c, struct advice *a)
{
    a->question = "most tolerant of a slow machine";
    if (!c->s->slow) {
        snprintf(a->why, sizeof(a->why), "not measured: give --slow RANK=MS");
        return;
    }
    a->answer = most_tolerant(c);
    if (!a->answer) {
        snprintf(a->why, sizeof(a->why),
                 "none reaches the target and keeps its accuracy within %.2f", TOLERATED);
        return;
    }
    const struct report *even = &a->answer->even.report, *slowed = &a->answer->slowed.report;
    int n = snprintf(a->why, sizeof(a->why), "the others take x %.2f of their time",
                     compare_growth(a->answer));
    if (n > 0 && isfinite(even->test_accuracy))
        snprintf(a->why + n, sizeof(a->why) - (size_t)n, ", accuracy %.4f (%.4f without it)",
                 slowed->test_accuracy, even->test_accuracy);
}

void
compare_advise(const struct compare *c, struct advice out[ADVICE_N])
{
    for (unsigned i = 0; i < ADVICE_N; i++)
        out[i] = (struct advice){0};
    advise_reproducible(c, &out[ADVICE_REPRODUCIBLE]);
    advise_fast(c, &out[ADVICE_FAST]);
    advise_tolerant(c, &out[ADVICE_TOLERANT]);
}
