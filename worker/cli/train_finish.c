/*
 * train_finish.c - the end of dtworker train.
 *
 * Invariants: LEAVE goes out before the final evaluation, so that nobody waits for it; after a signal
 * LEAVE takes at most LEAVE_STOPPED_MS, then --save. Threads: main.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cli/command.h"
#include "worker/cli/exit_code.h"
#include "worker/cli/explain.h"
#include "worker/cli/row.h"
#include "worker/cli/stop.h"
#include "worker/cli/training.h"
#include "worker/train/safetensors.h"

#define LEAVE_MS 10000
#define LEAVE_STOPPED_MS 1500
#define STATS_MS 2000

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
                     read_counter(t, "partial", &f->ps_partial) &&
                     read_counter(t, "pushed_bytes", &f->pushed_bytes) &&
                     read_counter(t, "pulled_bytes", &f->pulled_bytes);
    if (t->row.consistency == CONSISTENCY_SYNC)
        f->rounds /= settings_n_ps(t->s); /* each ps task counts them all */
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

enum dt_status
training_save(const struct training *t, struct dt_error *err)
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
    memcpy(f->phases, r->phases, sizeof(f->phases));
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
    char line[EXPLAIN_MAX];

    switch (r->end) {
    case LOOP_NOT_FINITE:
    case LOOP_FAILED:
        explain(r->status, r->text, line);
        dt_log(DT_LOG_ERR, "%s", line);
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

/* `code`: of the training; that the record could not be written comes after it. */
static int
close_record(struct training *t, int code)
{
    struct dt_error err = {DT_OK, ""};

    recorder_end(t->recorder, t->result.end == LOOP_DONE ? loop_values(t->loop) : NULL);
    enum dt_status r = recorder_close(t->recorder, &err);
    t->recorder = NULL;
    if (r == DT_OK)
        return code;
    int more = command_fail(r, &err);
    return code ? code : more;
}

int
training_finish(struct training *t)
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
    code = close_record(t, judge(t));
    code = code ? code : more;
    fill_report(t);
    code = code ? code : judge_score(t);
    if (t->result.end == LOOP_DONE || t->result.end == LOOP_STOPPED) {
        enum dt_status r = training_save(t, &err);
        if (r != DT_OK)
            more = command_fail(r, &err);
        code = code || r == DT_OK ? code : more;
    }
    enum dt_status r = write_report(t, &err);
    if (r != DT_OK)
        more = command_fail(r, &err);
    return code || r == DT_OK ? code : more;
}
