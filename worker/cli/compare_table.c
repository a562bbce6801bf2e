/*
 * compare_table.c - the tables of dtworker compare, a row as soon as its run is done. Threads: main alone.
 */
#include <math.h>

#include "worker/cli/compare.h"

/* A number in `width` columns, "-" where there is none. */
static void
put(FILE *out, int width, int decimals, double x)
{
    if (isfinite(x))
        fprintf(out, " | %*.*f", width, decimals, x);
    else
        fprintf(out, " | %*s", width, "-");
}

/* Where the model has no accuracy: the loss on the test rows. */
static double
quality(const struct compare *c, const struct compare_run *r)
{
    return compare_has_accuracy(c) ? r->report.test_accuracy : r->report.test_loss;
}

static void
put_staleness(const struct compare_run *r, FILE *out)
{
    char text[48] = "-";

    if (r->report.has_staleness)
        snprintf(text, sizeof(text), "%llu / %llu",
                 (unsigned long long)staleness_percentile(&r->report.staleness, 0.50),
                 (unsigned long long)staleness_percentile(&r->report.staleness, 0.99));
    fprintf(out, " | %9s", text);
}

static void
put_loss(const struct compare_run *r, FILE *out)
{
    fprintf(out, " | %8.4g", r->report.train_loss);
}

static void
put_name(const struct compare_entry *e, FILE *out)
{
    fprintf(out, "| %-13s", e->algorithm->name);
}

static void
put_failed(const struct compare_run *r, FILE *out)
{
    fprintf(out, " | failed: exit code %d\n", r->code);
    fflush(out);
}

static double
rate(const struct compare_run *r)
{
    return r->report.seconds > 0 ? (double)r->report.samples / r->report.seconds : 0;
}

static void
put_target_head(const struct compare *c, FILE *out)
{
    char text[32] = "to target";

    if (isfinite(c->target))
        snprintf(text, sizeof(text), "s to %.4f", c->target);
    fprintf(out, " | %11s", text);
}

void
compare_table_head(const struct compare *c, FILE *out)
{
    fprintf(out, "| %-13s | %8s | %8s | %8s | %9s | %7s", "algorithm",
            compare_has_accuracy(c) ? "accuracy" : "test", "loss", "seconds", "samples/s",
            "x local");
    put_target_head(c, out);
    fprintf(out, " | %9s | %6s | %7s | %9s", "staleness", "stale", "partial", "MB");
    if (c->s->repeat > 1)
        fprintf(out, " | %9s", "spread");
    fputs(
        " |\n|---------------|---------:|---------:|---------:|----------:|--------:|------------:|"
        "----------:|-------:|--------:|----------:|",
        out);
    fputs(c->s->repeat > 1 ? "----------:|\n" : "\n", out);
    fflush(out);
}

void
compare_table_row(const struct compare *c, const struct compare_entry *e, FILE *out)
{
    const struct compare_run *r = &e->even, *local = &c->entries[0].even;

    put_name(e, out);
    if (!r->done) {
        put_failed(r, out);
        return;
    }
    put(out, 8, 4, quality(c, r));
    put_loss(r, out);
    put(out, 8, 2, r->report.seconds);
    put(out, 9, 0, rate(r));
    put(out, 7, 2, local->done && rate(local) > 0 ? rate(r) / rate(local) : (double)NAN);
    put(out, 11, 2, curve_seconds_to(&r->curve, c->target));
    put_staleness(r, out);
    put(out, 6, 0, (double)r->report.stale_dropped);
    put(out, 7, 0, (double)r->report.partial);
    put(out, 9, 1, (double)(r->report.pushed_bytes + r->report.pulled_bytes) / 1e6);
    if (c->s->repeat > 1) /* zero is worth knowing */
        fprintf(out, " | %9.2g", e->most_loss - e->least_loss);
    fputs(" |\n", out);
    fflush(out);
}

void
compare_slow_head(const struct compare *c, FILE *out)
{
    fprintf(out, "\nRank %u waits %llu ms in each step:\n\n", c->slow_rank,
            (unsigned long long)c->slow_ms);
    fprintf(out, "| %-13s | %8s | %8s | %8s | %8s | %6s", "algorithm",
            compare_has_accuracy(c) ? "accuracy" : "test", "loss", "all, s", "fast, s", "grows");
    put_target_head(c, out);
    fprintf(out, " | %9s | %6s | %7s |\n", "staleness", "stale", "partial");
    fputs("|---------------|---------:|---------:|---------:|---------:|-------:|------------:|"
          "----------:|-------:|--------:|\n",
          out);
    fflush(out);
}

void
compare_slow_row(const struct compare *c, const struct compare_entry *e, FILE *out)
{
    const struct compare_run *r = &e->slowed;

    put_name(e, out);
    if (!r->done) {
        put_failed(r, out);
        return;
    }
    put(out, 8, 4, quality(c, r));
    put_loss(r, out);
    put(out, 8, 2, r->report.seconds);
    put(out, 8, 2, r->fast_seconds);
    put(out, 6, 2, compare_growth(e));
    put(out, 11, 2, curve_seconds_to(&r->curve, c->target));
    put_staleness(r, out);
    put(out, 6, 0, (double)r->report.stale_dropped);
    put(out, 7, 0, (double)r->report.partial);
    fputs(" |\n", out);
    fflush(out);
}
