/*
 * psctl_status.c - what `psctl status` shows. One thread.
 *
 * The body comes from psd but carries names that workers chose: text for people has its control
 * characters replaced.
 */
#include "worker/cli/psctl_status.h"

#include <stdint.h>

#include <string.h>

#include "proto/base/plural.h"

/* Names come from workers: no control characters to the terminal. */
static void
print_clean(const char *s, FILE *out)
{
    for (; *s; s++)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, out);
}

static void
print_ranks(const json_t *ranks, FILE *out)
{
    size_t i;
    json_t *v;

    json_array_foreach(ranks, i, v)
        fprintf(out, "%s%lld", i ? ", " : "", (long long)json_integer_value(v));
}

static void
print_member(const json_t *m, FILE *out)
{
    fprintf(out, "  rank %-4lld %-8s", body_number(m, "rank"), body_text(m, "state"));
    if (body_text(m, "host")[0]) {
        fputs(" ", out);
        print_clean(body_text(m, "host"), out);
        fprintf(out, " pid %lld", body_number(m, "pid"));
    }
    if (body_number(m, "first") > 0)
        fprintf(out, ", from step %lld", body_number(m, "first"));
    if (json_is_integer(json_object_get(m, "last")))
        fprintf(out, ", last step %lld", body_number(m, "last"));
    if (body_number(m, "silent_ms") >= 1000)
        fprintf(out, ", silent for %.1f s", (double)body_number(m, "silent_ms") / 1000);
    fputc('\n', out);
}

static void
print_wait(const json_t *w, FILE *out)
{
    const json_t *ranks = json_object_get(w, "ranks");

    fprintf(out, "  rank %lld waits", body_number(w, "rank"));
    if (body_text(w, "variable")[0]) {
        fputs(" at ", out);
        print_clean(body_text(w, "variable"), out);
        fprintf(out, "[%lld]", body_number(w, "slice"));
    }
    if (strcmp(body_text(w, "reason"), "init") == 0)
        fputs(" for initial values", out);
    else if (strcmp(body_text(w, "reason"), "global_step") == 0 &&
             json_is_null(json_object_get(w, "step")))
        fputs(" for the others to end", out);
    else if (strcmp(body_text(w, "reason"), "global_step") == 0)
        fprintf(out, " for global step %lld", body_number(w, "step"));
    else if (strcmp(body_text(w, "reason"), "clock") == 0)
        fprintf(out, " for clock %lld", body_number(w, "step"));
    else
        fprintf(out, " for step %lld", body_number(w, "step"));
    if (json_array_size(ranks) > 0) {
        fputs(json_array_size(ranks) == 1 ? ": rank " : ": ranks ", out);
        print_ranks(ranks, out);
    }
    fputc('\n', out);
}

/* "key=value" of all counters that are not 0. */
static void
print_counters(const json_t *counters, FILE *out)
{
    const char *key;
    json_t *v;
    int n = 0;

    json_object_foreach((json_t *)(uintptr_t)counters, key, v)
    {
        if (json_integer_value(v) == 0)
            continue;
        fputs(n++ ? " " : "  ", out);
        print_clean(key, out);
        fprintf(out, "=%lld", (long long)json_integer_value(v));
    }
    if (n)
        fputc('\n', out);
}

/* What the operator has set. */
static void
print_set(const json_t *set, FILE *out)
{
    fprintf(out, "  set %s=%.9g", body_text(set, "key"),
            json_number_value(json_object_get(set, "value")));
    if (body_text(set, "variable")[0]) {
        fputs(" of ", out);
        print_clean(body_text(set, "variable"), out);
    }
    fprintf(out, " from step %lld on\n", body_number(set, "step"));
}

/* NaN or Inf in a variable. */
static void
print_nonfinite(const json_t *n, FILE *out)
{
    const char *slot = body_text(n, "slot");

    fputs("  ", out);
    print_clean(body_text(n, "variable"), out);
    fprintf(out,
            ": NaN or Inf in its %s%s, found at step %lld after a gradient of up to %.3g from rank "
            "%lld\n",
            slot[0] ? "slot " : "values", slot, body_number(n, "step"),
            json_number_value(json_object_get(n, "largest")), body_number(n, "rank"));
}

static void
print_job(const json_t *job, FILE *out)
{
    const json_t *list;
    size_t i;
    json_t *v;

    fputs("job ", out);
    print_clean(body_text(job, "name"), out);
    fprintf(out, ": %s, step %lld, %lld worker%s expected", body_text(job, "state"),
            body_number(job, "step"), body_number(job, "workers"),
            dt_plural((uint64_t)body_number(job, "workers")));
    if (body_text(job, "reason")[0]) {
        fputs(" (", out);
        print_clean(body_text(job, "reason"), out);
        fputs(")", out);
    }
    fputc('\n', out);
    list = json_object_get(job, "sets");
    json_array_foreach(list, i, v) print_set(v, out);
    list = json_object_get(job, "nonfinite");
    json_array_foreach(list, i, v) print_nonfinite(v, out);
    list = json_object_get(job, "members");
    json_array_foreach(list, i, v) print_member(v, out);
    list = json_object_get(job, "waiting");
    json_array_foreach(list, i, v) print_wait(v, out);
    print_counters(json_object_get(job, "counters"), out);
}

static double
seconds_of(const json_t *totals, const char *stage)
{
    return json_number_value(json_object_get(json_object_get(totals, "seconds"), stage));
}

/* Where the time of the last seconds went: shares since the start would hardly move in a psd that is old. */
static void
print_stages(const json_t *shard, FILE *out)
{
    static const char *const stages[] = {"idle", "receive", "decode", "apply", "reply", "other"};
    const json_t *recent = json_object_get(shard, "recent");
    long long parked = body_number(recent, "parked");
    double all = 0;
    size_t i;

    for (i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
        all += seconds_of(recent, stages[i]);
    if (all <= 0)
        return;
    fprintf(out, "shard %lld, last %.1f s:", body_number(shard, "shard"), all);
    for (i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
        fprintf(out, "%s %s %.1f %%", i ? "," : "", stages[i],
                100 * seconds_of(recent, stages[i]) / all);
    if (parked > 0)
        fprintf(out, "; parked %lld (mean %.1f ms)", parked,
                1e3 * json_number_value(json_object_get(recent, "parked_seconds")) /
                    (double)parked);
    fputc('\n', out);
}

/* By index; they come in the order in which the shards answered. */
static void
print_shards(const json_t *status, FILE *out)
{
    const json_t *shards = json_object_get(status, "stages");
    long long n = body_number(status, "shards"), k;
    size_t i;
    json_t *v;

    for (k = 0; k < n; k++)
        json_array_foreach(shards, i, v)
        {
            if (body_number(v, "shard") == k)
                print_stages(v, out);
        }
}

/* The shares of one processor that the threads had since the status before. */
static void
print_cpu(const json_t *cpu, FILE *out)
{
    double all = json_number_value(json_object_get(cpu, "recent_seconds"));
    const json_t *threads = json_object_get(cpu, "threads");
    size_t i;
    json_t *v;

    if (json_array_size(threads) == 0 || all <= 0)
        return;
    fprintf(out, "CPU, last %.1f s:", all);
    json_array_foreach(threads, i, v)
        fprintf(out, "%s %s %.0f %%", i ? "," : "", body_text(v, "name"),
                100 * json_number_value(json_object_get(v, "recent")) / all);
    fputc('\n', out);
}

void
status_print(const json_t *status, FILE *out)
{
    const json_t *jobs = json_object_get(status, "jobs");
    size_t i;
    json_t *v;

    fprintf(out, "psd %s, incarnation %s, %lld shard%s, %lld session%s, %zu job%s\n",
            body_text(status, "version"), body_text(status, "incarnation"),
            body_number(status, "shards"), dt_plural((uint64_t)body_number(status, "shards")),
            body_number(status, "sessions"), dt_plural((uint64_t)body_number(status, "sessions")),
            json_array_size(jobs), dt_plural(json_array_size(jobs)));
    print_shards(status, out);
    print_cpu(json_object_get(status, "cpu"), out);
    json_array_foreach(jobs, i, v) print_job(v, out);
}
