/*
 * explain.c - from "lease_ms: the job has 10000, this worker says 2000", as psd has it, to the options that make it so.
 *
 * Invariant: both values stay in the line. A pure function; any thread.
 */
#include "worker/cli/explain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MARK ": the job has "
#define VARIABLES " variables, this worker declares "
#define SAME "; give all workers the same, or this one another --job "
#define OTHER_JOB "; give this worker another --job "
#define FRESH "(--fresh replaces one that has no workers any more)"
#define RANKS "; M workers have --workers M and the ranks 0 to M-1"
#define N_WORDS (sizeof(words) / sizeof(words[0]))

/* The job's parameters (proto/wire/params.c) and what a variable is declared with (proto/wire/declare.c). */
static const struct {
    const char *key, *options;
} words[] = {
    {"workers", "--workers"},
    {"tasks", "--ps (its ps tasks)"},
    {"consistency", "--algorithm (its consistency)"},
    {"locking", "--algorithm or --locking (its locking)"},
    {"aggregate", "--aggregate"},
    {"reduce", "--algorithm or --reduce (of a round)"},
    {"on_loss", "--on-loss or --deterministic (on a loss)"},
    {"lease_ms", "--lease (in ms)"},
    {"start_timeout_ms", "--start-timeout (in ms)"},
    {"round_timeout_ms", "--round-timeout (in ms)"},
    {"max_bad", "--max-bad"},
    {"max_staleness", "--max-staleness"},
    {"staleness_bound", "--staleness-bound"},
    {"deterministic", "--deterministic"},
    {"kernel", "--deterministic needs processors of one kind (kernel)"},
    {"name", "--model (name)"},
    {"shape", "--model or --data (shape)"},
    {"optimizer", "--algorithm, --profile or --server-optimizer (optimizer)"},
    {"lr", "--lr"},
    {"clip_value", "--clip-value"},
    {"weight_decay", "--weight-decay"},
    {"warmup", "--warmup"},
    {"init", "--model (initial values)"},
    {"seed", "--seed"},
    {"task", "--place, --placement or --ps (ps task)"},
};

static const char *const schedules[] = {"exponential.", "inverse-time.", "polynomial.", "cosine.",
                                        "piecewise."};

static bool
is_of_schedule(const char *key)
{
    for (size_t i = 0; i < sizeof(schedules) / sizeof(schedules[0]); i++) {
        if (strncmp(key, schedules[i], strlen(schedules[i])) == 0)
            return true;
    }
    return false;
}

/* "lease_ms" (n bytes) to "--lease (in ms)"; an unknown one stays as it is. */
static void
translate(const char *key, int n, char *out, size_t size)
{
    snprintf(out, size, is_of_schedule(key) ? "--lr-schedule (%.*s)" : "%.*s", n, key);
    for (size_t i = 0; i < N_WORDS; i++) {
        if (strlen(words[i].key) == (size_t)n && strncmp(words[i].key, key, (size_t)n) == 0)
            snprintf(out, size, "%s", words[i].options);
    }
}

/* Past the last ": " before `end`, or `text` itself. */
static const char *
last_part(const char *text, const char *end)
{
    const char *found = text, *p;

    for (p = text; (p = strstr(p, ": ")) != NULL && p < end; p += 2)
        found = p + 2;
    return found;
}

static void
explain_mismatch(const char *text, char out[EXPLAIN_MAX])
{
    const char *mark = strstr(text, MARK), *count = strstr(text, VARIABLES);
    char options[96];

    if (!mark) { /* it says what to do */
        snprintf(out, EXPLAIN_MAX, "%s%s", text, strstr(text, "--ps") ? "" : OTHER_JOB FRESH);
        return;
    }
    if (count) { /* "the job has 2 variables, this worker declares 4" */
        snprintf(out, EXPLAIN_MAX, "%.*s: --model or --partition%s%s", (int)(mark - text), text,
                 mark, SAME FRESH);
        return;
    }
    const char *key = last_part(text, mark);
    translate(key, (int)(mark - key), options, sizeof(options));
    snprintf(out, EXPLAIN_MAX, "%.*s%s%s%s", (int)(key - text), text, options, mark, SAME FRESH);
}

/* Which of its requests psd refused is no matter to who gives options. */
static void
remove_request(char *text)
{
    static const char request[] = ", DECLARE";
    char *at = strstr(text, request);

    if (at)
        memmove(at, at + strlen(request), strlen(at + strlen(request)) + 1);
}

void
explain(enum dtw_status status, const char *text, char out[EXPLAIN_MAX])
{
    snprintf(out, EXPLAIN_MAX, "%s%s", text[0] ? text : dtw_strerror(status),
             status == DTW_RANK_TAKEN ? RANKS : "");
    if (status == DTW_MISMATCH && text[0]) {
        explain_mismatch(text, out);
        remove_request(out);
    }
}
