/*
 * train_command.c - dtworker train: one worker of a job, from its data through the loop; train_finish.c ends it.
 *
 * Invariants: after a signal the worker leaves, saves, and then the signal ends the process. The client is
 * closed before the loop's buffers go. Threads: main; the log callback also in the library's background thread.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/plural.h"
#include "worker/cli/affinity.h"
#include "worker/cli/command.h"
#include "worker/cli/elastic.h"
#include "worker/cli/exit_code.h"
#include "worker/cli/explain.h"
#include "worker/cli/extras.h"
#include "worker/cli/pins.h"
#include "worker/cli/record_header.h"
#include "worker/cli/row.h"
#include "worker/cli/stop.h"
#include "worker/cli/training.h"
#include "worker/train/safetensors.h"

#define METRICS_INTERVAL_MS 1000
#define REPORT_INTERVAL_MS 200

static void
training_deinit(struct training *t)
{
    dtw_close(t->client);
    loop_destroy(t->loop);
    model_destroy(t->model);
    recorder_close(t->recorder, NULL);
    metrics_close(t->metrics, NULL);
    metrics_close(t->report, NULL);
    if (t->report_out)
        fclose(t->report_out);
    data_deinit(&t->data);
}

static void
say(void *arg, enum dtw_log_level level, const char *line)
{
    struct training *t = arg;

    if (!dt_log_enabled((enum dt_log_level)level) ||
        (level > DTW_LOG_WARNING && atomic_load(&t->leaving)))
        return;
    progress_clear(&t->progress);
    dt_log((enum dt_log_level)level, "%s", line);
}

static void
point(void *arg, const struct loop_point *p)
{
    struct training *t = arg;

    progress_point(&t->progress, p);
    metrics_point(t->metrics, p, false);
    metrics_point(t->report, p, false);
}

static enum dt_status
open_model(struct training *t, struct dt_error *err)
{
    const struct settings *s = t->s;
    enum dt_status r = affinity_parse(s->cpus, &t->cpus, err);
    int n = CPU_COUNT(&t->cpus);

    model_set_threads((int)settings_threads(s, (unsigned)(n > 0 ? n : processors())));
    if (r == DT_OK && s->data)
        r = data_load(&t->data, s->data, s->model, s, err);
    if (r == DT_OK && s->target_accuracy > 0 && t->data.test.n_rows == 0)
        r = dt_fail(err, DT_E_DATA, "%s has no test rows: leave --target-accuracy out", s->data);
    return r == DT_OK ? training_open_model(t, err) : r;
}

static enum dt_status
open_record(struct training *t, struct dt_error *err)
{
    char *header = record_header_text(t);

    if (!header)
        return dt_fail(err, DT_E_NO_MEMORY, "--record: memory is short");
    enum dt_status r =
        recorder_create(t->s->record, (uint32_t)t->s->rank, header, &t->recorder, err);
    free(header);
    return r;
}

enum dt_status
train_check(const struct settings *s, struct dt_error *err)
{
    struct training t = {.s = s};
    enum dt_status r = open_model(&t, err);

    training_deinit(&t);
    return r;
}

/* Whatever cannot be written is said before hours of training. */
static enum dt_status
open_outputs(struct training *t, struct dt_error *err)
{
    const struct settings *s = t->s;
    enum dt_status r = DT_OK;

    if (s->report_fd >= 0) {
        int copy = fcntl((int)s->report_fd, F_DUPFD_CLOEXEC, 3);
        t->report_out = copy < 0 ? NULL : fdopen(copy, "w");
        if (!t->report_out)
            return dt_fail(err, DT_E_USAGE, "--report-fd %lld is no open descriptor",
                           (long long)s->report_fd);
        r = metrics_open_fd((int)s->report_fd, REPORT_INTERVAL_MS, &t->report, err);
    }
    if (r == DT_OK && s->save)
        r = model_file_probe(s->save, err);
    if (r == DT_OK && s->metrics)
        r = metrics_open(s->metrics, METRICS_INTERVAL_MS, &t->metrics, err);
    if (r == DT_OK && s->record)
        r = open_record(t, err);
    return r;
}

static void
start_line(struct training *t)
{
    const struct settings *s = t->s;
    uint64_t rows = training_rows(t);
    uint64_t parts = settings_parts(s), global = parts * s->batch;
    int threads = model_threads();
    char cpus[64];

    fprintf(t->text, "%s, %s: rank %llu of %llu", s->algorithm, s->model,
            (unsigned long long)s->rank, (unsigned long long)s->workers);
    if (rows > 0)
        fprintf(t->text, ", global batch %llu (%llu x %llu), %llu training row%s, %llu test row%s",
                (unsigned long long)global, (unsigned long long)parts, (unsigned long long)s->batch,
                (unsigned long long)rows, dt_plural(rows), (unsigned long long)t->data.test.n_rows,
                dt_plural(t->data.test.n_rows));
    if (s->replicas > 1)
        fprintf(t->text, ", %llu replicas", (unsigned long long)s->replicas);
    fprintf(t->text, ", %d thread%s", threads, dt_plural((uint64_t)threads));
    if (CPU_COUNT(&t->cpus) > 0 && affinity_text(&t->cpus, cpus, sizeof(cpus)))
        fprintf(t->text, " on cpu %s", cpus);
    fprintf(t->text, ", %llu step%s\n", (unsigned long long)t->steps, dt_plural(t->steps));
    fflush(t->text);
    progress_init(&t->progress, t->text, rows > 0 ? global : parts, t->steps, t->steps_per_epoch);
}

/* Who joins beyond the ranks of --lr-per-rank has no rate there. */
static void
rate_line(const struct training *t)
{
    const struct settings *s = t->s;

    if (t->row.has_rank_rates && s->lr_per_rank && s->rank >= s->workers)
        dt_log(DT_LOG_NOTICE,
               "--lr-per-rank has no rate of rank %llu: it takes %g, %s's own / %llu",
               (unsigned long long)s->rank, settings_rank_lr(s), s->algorithm,
               (unsigned long long)s->workers);
}

/* What an elastic row reports and saves is the centre. In `run` rank 0 says it for all. */
static void
elastic_line(const struct training *t)
{
    char text[256];

    if ((t->s->report_fd < 0 || t->s->rank == 0) &&
        elastic_is_short(&t->row, t->steps, text, sizeof(text)))
        dt_log(DT_LOG_WARNING, "%s", text);
}

static enum dtw_status
open_client(struct training *t, struct dtw_error *err)
{
    const struct settings *s = t->s;
    struct dtw_options o;

    dtw_options_init(&o);
    o.ps = (const char *const *)s->ps;
    o.n_ps = settings_n_ps(s);
    o.job = s->job;
    o.rank = (unsigned)s->rank;
    o.workers = (unsigned)s->workers;
    o.fresh = s->fresh;
    if (t->row.consistency == CONSISTENCY_ASYNC)
        o.consistency = "async";
    if (t->row.consistency == CONSISTENCY_SSP) {
        o.consistency = "ssp";
        o.staleness_bound = s->staleness_bound;
    }
    if (t->row.locking == LOCKING_NONE)
        o.locking = "none";
    if (t->row.locking == LOCKING_VARIABLE)
        o.locking = "variable";
    o.placement = settings_placement(s);
    o.max_staleness = s->max_staleness;
    o.aggregate = (unsigned)s->aggregate;
    o.reduce = settings_reduce(s);
    o.on_loss = settings_on_loss(s);
    o.deterministic = s->deterministic;
    if (s->deterministic)
        o.kernel = model_cpu_kernel();
    o.lease_ms = s->lease_ms;
    o.start_timeout_ms = s->start_timeout_ms;
    o.round_timeout_ms = s->round_timeout_ms;
    o.max_bad = (unsigned)s->max_bad;
    o.retry_for_ms = s->retry_for_ms;
    o.log = say;
    o.log_arg = t;
    o.stop_fd = stop_fd();
    enum dtw_status status = dtw_open(&o, &t->client, err);
    return status == DTW_OK ? pins_apply(s, t->client, err) : status;
}

static enum dt_status
open_loop(struct training *t, struct dt_error *err)
{
    struct loop_plan plan;
    enum dt_status r = training_plan(t, &plan, err);

    plan.client = t->client;
    if (t->recorder)
        plan.link = recorder_link(t->recorder, t->client);
    plan.point = point;
    plan.point_arg = t;
    return r == DT_OK ? loop_create(&plan, &t->loop, err) : r;
}

static int
train(struct training *t)
{
    struct dt_error err = {DT_OK, ""};
    struct dtw_error lib = {DTW_OK, ""};
    char line[EXPLAIN_MAX];

    t->row = settings_row(t->s);
    enum dt_status r = open_model(t, &err);
    if (r == DT_OK)
        r = open_outputs(t, &err);
    if (r != DT_OK)
        return command_fail(r, &err);
    affinity_bind_others(&t->cpus);
    start_line(t);
    rate_line(t);
    elastic_line(t);
    if (algorithm_needs_ps(&t->row)) {
        enum dtw_status s = open_client(t, &lib);
        if (s == DTW_INTERRUPTED)
            return 0;
        if (s != DTW_OK) {
            explain(s, lib.text, line);
            dt_log(DT_LOG_ERR, "%s", line);
            return exit_code_of(s);
        }
    }
    affinity_bind(&t->cpus);
    r = open_loop(t, &err);
    if (r != DT_OK)
        return command_fail(r, &err);
    loop_run(t->loop, &t->result);
    return training_finish(t);
}

int
train_command(struct settings *s, char **positional)
{
    struct training t = {.s = s, .text = s->json ? stderr : stdout};
    struct dt_error err = {DT_OK, ""};

    (void)positional;
    enum dt_status r = settings_check_train(s, &err);
    if (r == DT_OK)
        r = stop_open(&err);
    if (r != DT_OK)
        return command_fail(r, &err);
    int code = train(&t);
    bool stopped = stop_signal() != 0 && t.result.end != LOOP_DONE;
    training_deinit(&t);
    return stopped ? stop_raise() : code;
}
