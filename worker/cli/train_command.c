/*
 * train_command.c - dtworker train: one worker of a job, from its data to its final report.
 *
 * Invariants: LEAVE goes out before the final evaluation, so that nobody waits for it; after a signal
 * LEAVE takes at most LEAVE_STOPPED_MS, then --save, then the signal ends the process. The client is closed before
 * the loop's buffers go. Threads: main; the log callback also in the library's background thread.
 */
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cli/command.h"
#include "worker/cli/exit_code.h"
#include "worker/cli/pins.h"
#include "worker/cli/progress.h"
#include "worker/cli/report.h"
#include "worker/cli/row.h"
#include "worker/cli/score.h"
#include "worker/cli/stop.h"
#include "worker/lib/dtworker.h"
#include "worker/train/loop.h"
#include "worker/train/metrics.h"
#include "worker/train/safetensors.h"

#define LEAVE_MS 10000
#define LEAVE_STOPPED_MS 1500
#define STATS_MS 2000
#define METRICS_INTERVAL_MS 1000
#define REPORT_INTERVAL_MS 200

struct training {
    const struct settings *s;
    struct algorithm row; /* with what the options change in it */
    struct data data;
    struct model *model;       /* owned */
    struct dtw_client *client; /* owned; NULL: no psd */
    struct loop *loop;         /* owned */
    struct metrics *metrics;   /* owned; --metrics */
    struct metrics *report;    /* owned; --report-fd, for `run` */
    FILE *report_out;          /* owned */
    FILE *text;                /* borrowed: where text for people goes */
    struct progress progress;
    atomic_bool leaving; /* what psd does from here on is of no interest */
    uint64_t steps, steps_per_epoch;
    struct loop_result result;
    struct report final;
};

static void
training_deinit(struct training *t)
{
    dtw_close(t->client);
    loop_destroy(t->loop);
    model_destroy(t->model);
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

static uint64_t
training_rows(const struct training *t)
{
    return t->data.loaded ? t->data.train.n_rows : 0;
}

static enum dt_status
open_model(struct training *t, struct dt_error *err)
{
    const struct settings *s = t->s;
    enum dt_status r = DT_OK;

    model_set_threads(s->threads > 0 ? (int)s->threads : s->replicas > 1 ? 1 : processors());
    if (s->data)
        r = data_load(&t->data, s->data, s->model, s, err);
    if (r == DT_OK && s->target_accuracy > 0 && t->data.test.n_rows == 0)
        r = dt_fail(err, DT_E_DATA, "%s has no test rows: leave --target-accuracy out", s->data);
    if (r == DT_OK)
        r = model_create(s->model, t->data.train.n_features, t->data.train.n_classes,
                         (uint32_t)s->batch, s->seed, &t->model, err);
    if (r == DT_OK && t->data.loaded)
        r = model_check_data(t->model, &t->data.train, err);
    if (r == DT_OK && t->data.test.n_rows > 0)
        r = model_check_data(t->model, &t->data.test, err);
    if (r == DT_OK)
        settings_length(s, training_rows(t), &t->steps, &t->steps_per_epoch);
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
    return r;
}

static void
start_line(struct training *t)
{
    const struct settings *s = t->s;
    uint64_t rows = training_rows(t);
    uint64_t parts = s->workers * s->replicas, global = parts * s->batch;
    int threads = model_threads();

    fprintf(t->text, "%s, %s: rank %llu of %llu", s->algorithm, s->model,
            (unsigned long long)s->rank, (unsigned long long)s->workers);
    if (rows > 0)
        fprintf(t->text, ", global batch %llu (%llu x %llu), %llu training rows, %llu test rows",
                (unsigned long long)global, (unsigned long long)parts, (unsigned long long)s->batch,
                (unsigned long long)rows, (unsigned long long)t->data.test.n_rows);
    if (s->replicas > 1)
        fprintf(t->text, ", %llu replicas", (unsigned long long)s->replicas);
    fprintf(t->text, ", %d thread%s, %llu steps\n", threads, threads == 1 ? "" : "s",
            (unsigned long long)t->steps);
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
    if (t->row.locking == LOCKING_NONE)
        o.locking = "none";
    o.placement = settings_placement(s);
    o.max_staleness = s->max_staleness;
    o.aggregate = (unsigned)s->aggregate;
    o.reduce = settings_reduce(s);
    o.on_loss = settings_on_loss(s);
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
    const struct settings *s = t->s;
    struct loop_plan plan = {
        .algorithm = &t->row,
        .model = t->model,
        .train = t->data.loaded ? &t->data.train : NULL,
        .test = t->data.loaded ? &t->data.test : NULL,
        .client = t->client,
        .rank = (uint32_t)s->rank,
        .workers = (uint32_t)s->workers,
        .batch = (uint32_t)s->batch,
        .replicas = (uint32_t)s->replicas,
        .overlap = s->overlap,
        .steps = t->steps,
        .steps_per_epoch = t->steps_per_epoch,
        .target_accuracy = s->target_accuracy,
        .seed = s->seed,
        .lr = (float)settings_lr(s),
        .rank_lr = (float)settings_rank_lr(s),
        .local_lr = (float)settings_local_lr(s),
        .window = t->row.window,
        .wait_for_step = s->wait_for_step,
        .final_values = s->save != NULL,
        .step_delay_ms = (int64_t)s->step_delay_ms,
        .stop_fd = stop_fd(),
        .point = point,
        .point_arg = t,
    };
    return loop_create(&plan, &t->loop, err);
}

static bool
read_counter(struct training *t, const char *name, uint64_t *value)
{
    return dtw_stats(t->client, name, STATS_MS, value, NULL) == DTW_OK;
}

/* Say LEAVE; what psd counted is asked first. Not when psd is what failed. */
static int
leave(struct training *t)
{
    struct report *f = &t->final;
    enum loop_end end = t->result.end;
    struct dtw_error err = {DTW_OK, ""};

    if (!t->client)
        return 0;
    if (end == LOOP_DONE)
        f->counted = read_counter(t, "rounds", &f->rounds) &&
                     read_counter(t, "stale", &f->ps_stale) &&
                     read_counter(t, "partial", &f->ps_partial);
    if (end != LOOP_FAILED || t->result.status != DTW_UNAVAILABLE) {
        int64_t ms = end == LOOP_DONE && stop_signal() == 0 ? LEAVE_MS : LEAVE_STOPPED_MS;
        atomic_store(&t->leaving, true);
        enum dtw_status s = dtw_leave(t->client, ms, &err);
        if (s != DTW_OK && end == LOOP_DONE) {
            dt_log(DT_LOG_ERR, "the job could not be left: %s",
                   err.text[0] ? err.text : dtw_strerror(s));
            return exit_code_of(s);
        }
    }
    return 0;
}

static enum dt_status
save(struct training *t, struct dt_error *err)
{
    struct model_file file = {0};

    if (!t->s->save)
        return DT_OK;
    if (!loop_values(t->loop)) {
        dt_log(DT_LOG_WARNING, "--save %s: there are no values yet, nothing is written",
               t->s->save);
        return DT_OK;
    }
    enum dt_status r =
        model_file_describe(&file, t->model, t->data.loaded ? &t->data.train : NULL,
                            loop_values(t->loop), t->s->job, t->result.last.step, err);
    if (r == DT_OK)
        r = model_file_save(t->s->save, &file, err);
    if (r == DT_OK)
        dt_log(DT_LOG_INFO, "values of step %llu saved to %s",
               (unsigned long long)t->result.last.step, t->s->save);
    return r;
}

static void
fill_report(struct training *t)
{
    const struct loop_result *r = &t->result;
    const struct settings *s = t->s;
    struct report *f = &t->final;
    struct score score = {{NAN, NAN}, {NAN, NAN}};

    if (r->end == LOOP_DONE && loop_values(t->loop))
        data_score(&t->data, t->model, loop_values(t->loop), &score);
    f->algorithm = s->algorithm;
    f->model = s->model;
    f->workers = s->workers;
    f->ps_tasks = settings_n_ps(s);
    f->rank = (int64_t)s->rank;
    f->rows = training_rows(t);
    f->batch = s->batch;
    f->replicas = s->replicas;
    f->steps = r->last.step;
    f->samples = r->last.samples;
    f->seconds = r->last.seconds;
    f->train_loss = score.train.loss;
    f->test_loss = score.test.loss;
    f->test_accuracy = score.test.accuracy;
    f->stale_dropped = r->last.stale;
    f->partial = r->last.partial;
    f->unseen_rows = r->unseen;
    f->lives_lost = r->lives_lost;
    f->has_staleness = r->last.staleness != NULL;
    f->staleness = r->staleness;
    f->interrupted = r->end == LOOP_STOPPED;
}

static enum dt_status
write_report(struct training *t, struct dt_error *err)
{
    enum dt_status r = DT_OK;

    if (t->report_out)
        r = report_write_json(&t->final, t->report_out, err);
    else if (t->s->json)
        r = report_write_json(&t->final, stdout, err);
    else if (t->result.end == LOOP_DONE)
        report_write_text(&t->final, stdout);
    enum dt_status closed = metrics_close(t->metrics, r == DT_OK ? err : NULL);
    t->metrics = NULL;
    return r != DT_OK ? r : closed;
}

/* What the loop's end means; says it. */
static int
judge(const struct training *t)
{
    const struct loop_result *r = &t->result;

    switch (r->end) {
    case LOOP_NOT_FINITE:
    case LOOP_FAILED:
        dt_log(DT_LOG_ERR, "%s", r->text);
        return exit_code_of(r->status);
    case LOOP_STOPPED:
        dt_log(DT_LOG_NOTICE, "stopped by a signal at step %llu of %llu",
               (unsigned long long)r->last.step, (unsigned long long)t->steps);
        return 0;
    case LOOP_RUNNING:
    case LOOP_DONE:
        break;
    }
    if (r->last.stale + r->last.partial > 0)
        dt_log(DT_LOG_WARNING,
               "this worker was late: %llu of its %llu gradients were dropped, %llu taken in part",
               (unsigned long long)r->last.stale, (unsigned long long)r->pushes,
               (unsigned long long)r->last.partial);
    if (r->accepted + r->last.stale == 0) {
        dt_log(DT_LOG_ERR, "no update was acknowledged: the job was at step %llu of %llu",
               (unsigned long long)r->last.step, (unsigned long long)t->steps);
        return EXIT_CODE_TEMPORARY;
    }
    return 0;
}

/* The final loss is NaN where the last update did the damage. */
static int
judge_score(const struct training *t)
{
    if (t->result.end != LOOP_DONE || isfinite(t->final.train_loss))
        return 0;
    dt_log(DT_LOG_ERR,
           "the loss at the final values (step %llu) is not finite: try a lower %s (it is %g)",
           (unsigned long long)t->result.last.step,
           t->row.has_rank_rates ? "--lr-per-rank" : "--lr",
           t->row.has_rank_rates ? settings_rank_lr(t->s) : settings_lr(t->s));
    return EXIT_CODE_DATA;
}

/* Everything after the loop. */
static int
finish(struct training *t)
{
    struct dt_error err = {DT_OK, ""};
    int code, more;

    metrics_point(t->report, &t->result.last, true);
    if (!t->result.last.epoch_end &&
        loop_values(t->loop)) /* else it stands there, or there is none */
        metrics_point(t->metrics, &t->result.last, true);
    progress_clear(&t->progress);
    more = leave(t);
    dtw_close(t->client);
    t->client = NULL;
    code = judge(t);
    code = code ? code : more;
    fill_report(t);
    code = code ? code : judge_score(t);
    if (t->result.end == LOOP_DONE || t->result.end == LOOP_STOPPED) {
        enum dt_status r = save(t, &err);
        if (r != DT_OK)
            more = command_fail(r, &err);
        code = code || r == DT_OK ? code : more;
    }
    enum dt_status r = write_report(t, &err);
    if (r != DT_OK)
        more = command_fail(r, &err);
    return code || r == DT_OK ? code : more;
}

static int
train(struct training *t)
{
    struct dt_error err = {DT_OK, ""};
    struct dtw_error lib = {DTW_OK, ""};

    t->row = settings_row(t->s);
    enum dt_status r = open_model(t, &err);
    if (r == DT_OK)
        r = open_outputs(t, &err);
    if (r != DT_OK)
        return command_fail(r, &err);
    start_line(t);
    rate_line(t);
    if (algorithm_needs_ps(&t->row)) {
        enum dtw_status s = open_client(t, &lib);
        if (s == DTW_INTERRUPTED)
            return 0;
        if (s != DTW_OK) {
            dt_log(DT_LOG_ERR, "%s", lib.text[0] ? lib.text : dtw_strerror(s));
            return exit_code_of(s);
        }
    }
    r = open_loop(t, &err);
    if (r != DT_OK)
        return command_fail(r, &err);
    loop_run(t->loop, &t->result);
    return finish(t);
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
