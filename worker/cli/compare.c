/*
 * compare.c - which algorithms, with which settings each, and their runs one after the other.
 *
 * Invariants: every run has the settings of the command line but for its algorithm, and all were checked before
 * the first; local is entry 0. Threads: main alone.
 */
#include "worker/cli/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/parse.h"
#include "worker/cli/cluster_argv.h"
#include "worker/cli/command.h"
#include "worker/cli/stop.h"
#include "worker/train/model.h"

/* What run's settings get otherwise than as they are. */
#define N_SET_BY_COMPARE 2
static const char *const set_by_compare[N_SET_BY_COMPARE + 1] = {"algorithm", "json", NULL};

/* What concerns psd, its jobs and what goes between: nothing to a process that trains alone. */
static const char *const not_local[] = {"algorithm",
                                        "json",
                                        "workers",
                                        "ps-tasks",
                                        "start-timeout",
                                        "retry-for",
                                        "aggregate",
                                        "reduce",
                                        "on-loss",
                                        "lease",
                                        "round-timeout",
                                        "max-bad",
                                        "place",
                                        "partition",
                                        "placement",
                                        "window",
                                        "window-reduction",
                                        "server-optimizer",
                                        "local-lr",
                                        "alpha",
                                        "momentum",
                                        "overlap",
                                        "max-staleness",
                                        "wait-for-step",
                                        "lr-per-rank",
                                        "steps",
                                        "step-delay",
                                        "deterministic",
                                        "locking",
                                        "local-optimizer",
                                        "staleness-bound",
                                        NULL};
static const struct settings_route to_local = {settings_compare, settings_run, not_local};

static bool
is_local(const struct algorithm *a)
{
    return !algorithm_needs_ps(a);
}

static bool
looks_ahead(const struct algorithm *a)
{
    return a->lookahead != LOOKAHEAD_NONE;
}

static bool
is_bounded(const struct algorithm *a)
{
    return a->consistency == CONSISTENCY_SSP;
}

static bool
has_rank_rates(const struct algorithm *a)
{
    return a->has_rank_rates;
}

/* What --help says to belong to some algorithms goes to these, when there is one. Else it is refused with the reason. */
static const struct {
    const char *name;
    bool (*takes)(const struct algorithm *a);
} of_some[] = {
    {"alpha", algorithm_is_elastic},
    {"momentum", looks_ahead},
    {"staleness-bound", is_bounded},
    {"lr-per-rank", has_rank_rates},
};
#define N_OF_SOME (sizeof(of_some) / sizeof(of_some[0]))

static bool
is_for_another(const struct compare *c, const struct algorithm *a, size_t option)
{
    if (of_some[option].takes(a))
        return false;
    for (unsigned i = 0; i < c->n_entries; i++) {
        if (of_some[option].takes(c->entries[i].algorithm))
            return true;
    }
    return false;
}

/* All options but those that compare sets, or that another algorithm takes. */
static bool
forward_to_run(const struct compare *c, const struct algorithm *a, struct cluster_argv *argv)
{
    const char *own[N_SET_BY_COMPARE + N_OF_SOME + 1] = {NULL};
    const struct settings_route route = {settings_compare, settings_run, own};
    size_t n = 0;

    for (; set_by_compare[n]; n++)
        own[n] = set_by_compare[n];
    for (size_t i = 0; i < N_OF_SOME; i++) {
        if (is_for_another(c, a, i))
            own[n++] = of_some[i].name;
    }
    return settings_forward(c->s, &route, argv->v, &argv->n, CLUSTER_MAX_ARGV);
}

/* local takes one batch a step where all workers together take one each. */
static void
add_local(struct cluster_argv *argv, const struct settings *s)
{
    uint64_t steps = s->steps * settings_parts(s);

    if (steps > 0)
        cluster_argv_add(argv, "--steps=%llu", (unsigned long long)steps);
    if (s->step_delays)
        cluster_argv_add(argv, "--step-delay=%s", s->step_delays[0]);
}

/* The settings of a run by `a`; settings_run's, to be ended with dt_options_deinit. */
static enum dt_status
settings_of(const struct compare *c, const struct algorithm *a, struct settings *out,
            struct dt_error *err)
{
    const struct settings *s = c->s;
    struct cluster_argv argv = {0};
    bool forwarded;

    *out = (struct settings){0};
    cluster_argv_add(&argv, "run");
    cluster_argv_add(&argv, "--algorithm=%s", a->name);
    if (is_local(a))
        add_local(&argv, s);
    if (is_local(a))
        forwarded = settings_forward(s, &to_local, argv.v, &argv.n, CLUSTER_MAX_ARGV);
    else
        forwarded = forward_to_run(c, a, &argv);
    argv.failed |= !forwarded;
    enum dt_status r = dt_options_init(settings_run, out, err);
    if (r == DT_OK && argv.failed)
        r = dt_fail(err, DT_E_NO_MEMORY, "compare: memory is short");
    if (r == DT_OK)
        r = dt_options_parse(settings_run, out, (int)argv.n, argv.v, NULL, err);
    cluster_argv_deinit(&argv);
    return r == DT_OK ? settings_check_run(out, err) : r;
}

static enum dt_status
check_entry(const struct compare *c, const struct algorithm *a, struct dt_error *err)
{
    struct settings run;
    enum dt_status r = settings_of(c, a, &run, err);

    dt_options_deinit(settings_run, &run);
    return r;
}

static enum dt_status
add_entry(struct compare *c, const char *name, struct dt_error *err)
{
    const struct algorithm *a = algorithm_find(name);

    if (!a)
        return dt_fail(err, DT_E_USAGE,
                       "--algorithms: '%.64s' is unknown: dtworker run --help has "
                       "the list",
                       name);
    for (unsigned i = 0; i < c->n_entries; i++) {
        if (c->entries[i].algorithm == a)
            return DT_OK;
    }
    if (c->n_entries == COMPARE_MAX)
        return dt_fail(err, DT_E_USAGE, "--algorithms: more than %d", COMPARE_MAX);
    c->entries[c->n_entries++] = (struct compare_entry){.algorithm = a};
    return DT_OK;
}

static enum dt_status
add_entries(struct compare *c, struct dt_error *err)
{
    enum dt_status r = add_entry(c, "local", err);
    char *const *list = c->s->algorithms;
    bool all = settings_count(list) == 1 && strcmp(list[0], "all") == 0;

    for (unsigned i = 0; r == DT_OK && all && algorithm_at(i); i++)
        r = add_entry(c, algorithm_at(i)->name, err);
    for (unsigned i = 0; r == DT_OK && !all && list[i]; i++)
        r = add_entry(c, list[i], err);
    for (unsigned i = 0; r == DT_OK && i < c->n_entries; i++)
        r = check_entry(c, c->entries[i].algorithm, err);
    return r;
}

static enum dt_status
parse_slow(struct compare *c, struct dt_error *err)
{
    const char *text = c->s->slow, *sign = text ? strchr(text, '=') : NULL;
    char rank_text[24] = "";
    uint64_t rank = 0;

    if (!text)
        return DT_OK;
    if (sign && (size_t)(sign - text) < sizeof(rank_text))
        memcpy(rank_text, text, (size_t)(sign - text));
    if (!sign || !dt_parse_u64(rank_text, &rank) || !dt_parse_u64(sign + 1, &c->slow_ms) ||
        c->slow_ms == 0 || c->slow_ms > 1000000000)
        return dt_fail(err, DT_E_USAGE,
                       "--slow %s: give RANK=MS, a rank and its whole milliseconds a step", text);
    if (rank >= c->s->workers || c->s->workers < 2)
        return dt_fail(err, DT_E_USAGE,
                       "--slow %s: there is no rank %llu beside others: --workers "
                       "is %llu",
                       text, (unsigned long long)rank, (unsigned long long)c->s->workers);
    c->slow_rank = (unsigned)rank;
    return DT_OK;
}

bool
compare_has_accuracy(const struct compare *c)
{
    return strcmp(c->s->model, "toy") != 0 && model_target(c->s->model) != DATASET_NUMBERS;
}

enum dt_status
compare_init(struct compare *c, const struct settings *s, struct dt_error *err)
{
    *c = (struct compare){.s = s, .target = NAN};
    if (s->target > 0 && !compare_has_accuracy(c))
        return dt_fail(err, DT_E_USAGE, "--model %s has no accuracy: leave --target out", s->model);
    if (s->target > 0)
        c->target = s->target;
    enum dt_status r = parse_slow(c, err);
    return r == DT_OK ? add_entries(c, err) : r;
}

static void
run_deinit(struct compare_run *run)
{
    json_decref(run->workers);
    curve_deinit(&run->curve);
    *run = (struct compare_run){0};
}

void
compare_deinit(struct compare *c)
{
    for (unsigned i = 0; i < c->n_entries; i++) {
        run_deinit(&c->entries[i].even);
        run_deinit(&c->entries[i].slowed);
    }
}

double
compare_fast_seconds(const json_t *workers, unsigned slow_rank)
{
    double last = NAN;
    const json_t *w;
    size_t i;

    json_array_foreach(workers, i, w)
    {
        const json_t *seconds = json_object_get(w, "seconds");
        if (i != slow_rank && json_is_number(seconds))
            last = fmax(last, json_number_value(seconds));
    }
    return last;
}

double
compare_growth(const struct compare_entry *e)
{
    return e->slowed.done && e->even.done && e->even.fast_seconds > 0
               ? e->slowed.fast_seconds / e->even.fast_seconds
               : (double)NAN;
}

static void
add_point(void *arg, unsigned rank, const json_t *line)
{
    struct compare_run *run = arg;

    curve_add(&run->curve, rank, line);
}

static void
take_result(struct compare *c, const struct algorithm *a, struct cluster *cluster,
            struct compare_run *run)
{
    run->code = cluster->code;
    if (!cluster_report(cluster, &run->report)) {
        run->code = run->code ? run->code : dt_status_exit_code(DT_E_TEMPORARY);
        return;
    }
    run->report.algorithm = a->name;
    run->report.model = c->s->model;
    run->workers = cluster_detail(cluster);
    run->fast_seconds = compare_fast_seconds(run->workers, c->s->slow ? c->slow_rank : UINT32_MAX);
    run->done = run->code == 0;
    curve_end(&run->curve, run->report.seconds, run->report.test_accuracy);
}

/* --slow RANK=MS: the other ranks wait as they do anyway. */
static enum dt_status
slow_down(const struct compare *c, struct settings *run, struct dt_error *err)
{
    struct dt_buffer list = {0};
    uint64_t ms;

    for (unsigned rank = 0; rank < run->workers; rank++) {
        settings_step_delay(run, rank, &ms, NULL);
        dt_buffer_printf(&list, "%s%llu", rank ? "," : "",
                         (unsigned long long)(rank == c->slow_rank ? c->slow_ms : ms));
    }
    enum dt_status r = dt_options_set(settings_run, DT_OPT_CLI, run, "step-delay",
                                      dt_buffer_str(&list), "--slow", err);
    dt_buffer_deinit(&list);
    return r;
}

/* One training. False: a signal came. */
static bool
train(struct compare *c, const struct algorithm *a, bool slowed, struct compare_run *run)
{
    struct dt_error err = {DT_OK, ""};
    struct cluster *cluster = NULL;
    struct settings s;
    bool done = true;

    enum dt_status r = settings_of(c, a, &s, &err);
    if (r == DT_OK && slowed)
        r = slow_down(c, &s, &err);
    if (r == DT_OK)
        r = cluster_create(&s, &cluster, &err);
    if (r == DT_OK) {
        cluster->quiet = true;
        cluster->point = add_point;
        cluster->point_arg = run;
        r = cluster_run(cluster, &done, &err);
    }
    if (r == DT_OK && done)
        take_result(c, a, cluster, run);
    else if (r != DT_OK)
        run->code = command_fail(r, &err);
    cluster_destroy(cluster);
    dt_options_deinit(settings_run, &s);
    if (run->code != 0 && c->code == 0)
        c->code = run->code;
    return r != DT_OK || done;
}

static int
by_seconds(const void *a, const void *b)
{
    const struct compare_run *x = a, *y = b;

    if (x->done != y->done)
        return x->done ? -1 : 1;
    return (x->report.seconds > y->report.seconds) - (x->report.seconds < y->report.seconds);
}

/* All runs of an entry; the one of median time is kept. */
static void
keep_median(struct compare_entry *e, struct compare_run *runs, unsigned n)
{
    e->least_loss = INFINITY;
    e->most_loss = -INFINITY;
    qsort(runs, n, sizeof(*runs), by_seconds);
    for (unsigned i = 0; i < n && runs[i].done; i++) {
        e->n_runs++;
        e->least_loss = fmin(e->least_loss, runs[i].report.train_loss);
        e->most_loss = fmax(e->most_loss, runs[i].report.train_loss);
    }
    unsigned median = e->n_runs > 0 ? (e->n_runs - 1) / 2 : 0;
    e->even = runs[median];
    runs[median] = (struct compare_run){0};
}

static bool
train_even(struct compare *c, struct compare_entry *e)
{
    unsigned n = (unsigned)c->s->repeat;
    struct compare_run *runs = calloc(n, sizeof(*runs));
    bool go_on = runs != NULL;

    for (unsigned i = 0; go_on && i < n; i++)
        go_on = train(c, e->algorithm, false, &runs[i]);
    if (go_on)
        keep_median(e, runs, n);
    for (unsigned i = 0; runs && i < n; i++)
        run_deinit(&runs[i]);
    free(runs);
    return go_on;
}

/* Without --target it follows from local, which comes first. */
static void
set_target(struct compare *c)
{
    const struct compare_run *local = &c->entries[0].even;

    if (!isfinite(c->target) && local->done)
        c->target = COMPARE_TARGET_SHARE * local->report.test_accuracy;
}

bool
compare_all(struct compare *c, FILE *text)
{
    for (unsigned i = 0; i < c->n_entries; i++) {
        if (!train_even(c, &c->entries[i]))
            return false;
        if (i == 0) {
            set_target(c);
            if (text)
                compare_table_head(c, text);
        }
        if (text)
            compare_table_row(c, &c->entries[i], text);
    }
    if (text && c->s->slow)
        compare_slow_head(c, text);
    for (unsigned i = 1; c->s->slow && i < c->n_entries; i++) {
        if (!train(c, c->entries[i].algorithm, true, &c->entries[i].slowed))
            return false;
        if (text)
            compare_slow_row(c, &c->entries[i], text);
    }
    return true;
}
