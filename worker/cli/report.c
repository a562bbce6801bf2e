/*
 * report.c - the final report as JSON and as text, and back from JSON (run reads its workers').
 * Threads: main alone.
 */
#include "worker/cli/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/base/plural.h"

#include "worker/train/json_out.h"
#include "worker/train/phases_json.h"
#include "worker/train/staleness_json.h"

static json_t *
count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static double
rate(const struct report *r)
{
    return r->seconds > 0 ? (double)r->samples / r->seconds : 0;
}

static void
add_counters(json_t *o, const struct report *r)
{
    json_object_set_new(o, "rounds", r->counted ? count(r->rounds) : json_null());
    json_object_set_new(o, "ps_stale", r->counted ? count(r->ps_stale) : json_null());
    json_object_set_new(o, "ps_partial", r->counted ? count(r->ps_partial) : json_null());
    json_object_set_new(o, "pushed_bytes", r->counted ? count(r->pushed_bytes) : json_null());
    json_object_set_new(o, "pulled_bytes", r->counted ? count(r->pulled_bytes) : json_null());
}

json_t *
report_json(const struct report *r)
{
    json_t *o = json_object();

    json_object_set_new(o, "algorithm", json_string(r->algorithm));
    json_object_set_new(o, "model", json_string(r->model));
    json_object_set_new(o, "workers", count(r->workers));
    json_object_set_new(o, "ps_tasks", count(r->ps_tasks));
    if (r->rank >= 0)
        json_object_set_new(o, "rank", json_integer(r->rank));
    json_object_set_new(o, "rows", count(r->rows));
    json_object_set_new(o, "batch", count(r->batch));
    json_object_set_new(o, "replicas", count(r->replicas));
    json_object_set_new(o, "steps", count(r->steps));
    json_object_set_new(o, "samples", count(r->samples));
    json_object_set_new(o, "seconds", json_number(r->seconds));
    json_object_set_new(o, "samples_per_second", json_number(rate(r)));
    json_object_set_new(o, "time", phases_json(r->phases));
    json_object_set_new(o, "train_loss", json_number(r->train_loss));
    json_object_set_new(o, "test_loss", json_number(r->test_loss));
    json_object_set_new(o, "test_accuracy", json_number(r->test_accuracy));
    json_object_set_new(o, "stale_dropped", count(r->stale_dropped));
    json_object_set_new(o, "partial", count(r->partial));
    json_object_set_new(o, "unseen_rows", count(r->unseen_rows));
    json_object_set_new(o, "lives_lost", count(r->lives_lost));
    json_object_set_new(o, "interrupted", json_boolean(r->interrupted));
    json_object_set_new(o, "staleness", staleness_json(r->has_staleness ? &r->staleness : NULL));
    add_counters(o, r);
    if (r->workers_detail)
        json_object_set(o, "workers_detail", r->workers_detail);
    return o;
}

static uint64_t
get_count(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));

    return n > 0 ? (uint64_t)n : 0;
}

static double
get_number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static const char *
get_text(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

void
report_from_json(struct report *r, const json_t *o)
{
    *r = (struct report){
        .algorithm = get_text(o, "algorithm"),
        .model = get_text(o, "model"),
        .workers = get_count(o, "workers"),
        .ps_tasks = get_count(o, "ps_tasks"),
        .rank = json_integer_value(json_object_get(o, "rank")),
        .rows = get_count(o, "rows"),
        .batch = get_count(o, "batch"),
        .replicas = get_count(o, "replicas"),
        .steps = get_count(o, "steps"),
        .samples = get_count(o, "samples"),
        .seconds = get_number(o, "seconds"),
        .train_loss = get_number(o, "train_loss"),
        .test_loss = get_number(o, "test_loss"),
        .test_accuracy = get_number(o, "test_accuracy"),
        .stale_dropped = get_count(o, "stale_dropped"),
        .partial = get_count(o, "partial"),
        .unseen_rows = get_count(o, "unseen_rows"),
        .lives_lost = get_count(o, "lives_lost"),
        .interrupted = json_is_true(json_object_get(o, "interrupted")),
        .counted = json_is_integer(json_object_get(o, "rounds")),
        .rounds = get_count(o, "rounds"),
        .ps_stale = get_count(o, "ps_stale"),
        .ps_partial = get_count(o, "ps_partial"),
        .pushed_bytes = get_count(o, "pushed_bytes"),
        .pulled_bytes = get_count(o, "pulled_bytes"),
    };
    phases_from_json(r->phases, json_object_get(o, "time"), r->seconds);
    r->has_staleness = staleness_from_json(&r->staleness, json_object_get(o, "staleness"));
}

enum dt_status
report_write_json(const struct report *r, FILE *out, struct dt_error *err)
{
    if (json_put_line(report_json(r), out) && fflush(out) == 0)
        return DT_OK;
    return dt_fail(err, DT_E_IO, "the final report could not be written: %s",
                   errno ? strerror(errno) : "memory is short");
}

static void
put_quality(const struct report *r, FILE *out)
{
    if (isfinite(r->test_accuracy))
        fprintf(out, "test accuracy  %.4f\n", r->test_accuracy);
    else if (isfinite(r->test_loss)) /* a model for numbers */
        fprintf(out, "test loss      %.6g\n", r->test_loss);
    if (isfinite(r->train_loss))
        fprintf(out, "train loss     %.6g\n", r->train_loss);
}

static void
put_drops(const struct report *r, FILE *out)
{
    fprintf(out, "dropped        %llu stale, %llu partial%s\n",
            (unsigned long long)r->stale_dropped, (unsigned long long)r->partial,
            r->rank < 0 ? " (pushes of all workers)" : " (own pushes)");
    if (r->counted)
        fprintf(out, "psd counted    %llu %s, %llu stale slices, %llu partial pushes\n",
                (unsigned long long)r->rounds, r->has_staleness ? "batches" : "rounds",
                (unsigned long long)r->ps_stale, (unsigned long long)r->ps_partial);
    if (r->counted)
        fprintf(out, "payload        %.1f MB pushed, %.1f MB pulled\n",
                (double)r->pushed_bytes / 1e6, (double)r->pulled_bytes / 1e6);
}

static void
put_staleness(const struct staleness *s, FILE *out)
{
    fprintf(out, "staleness      p50 %llu, p99 %llu, max %llu\n",
            (unsigned long long)staleness_percentile(s, 0.50),
            (unsigned long long)staleness_percentile(s, 0.99), (unsigned long long)s->max);
}

/* Of what is trained alone there is no exchange to tell of. */
static void
put_time(const struct report *r, FILE *out)
{
    double s[N_PHASES];

    if (!phases_shares(r->phases, s))
        return;
    fprintf(out, "time           compute %.0f %%", 100 * s[PHASE_COMPUTE]);
    if (r->ps_tasks > 0)
        fprintf(out, ", push %.0f %%, wait %.0f %%", 100 * s[PHASE_PUSH], 100 * s[PHASE_WAIT]);
    fprintf(out, ", other %.0f %%\n", 100 * s[PHASE_OTHER]);
}

void
report_write_text(const struct report *r, FILE *out)
{
    fprintf(out, "%s, %s: %llu step%s in %.2f s\n", r->algorithm, r->model,
            (unsigned long long)r->steps, dt_plural(r->steps), r->seconds);
    put_quality(r, out);
    fprintf(out, "samples/s      %.0f (%llu samples%s)\n", rate(r), (unsigned long long)r->samples,
            r->rank < 0 ? ", all workers" : "");
    put_time(r, out);
    if (r->ps_tasks > 0)
        put_drops(r, out);
    if (r->has_staleness)
        put_staleness(&r->staleness, out);
    fprintf(out, "unseen rows    %llu\n", (unsigned long long)r->unseen_rows);
    fflush(out);
}
