/*
 * compare_json.c - the object of dtworker compare --json. Threads: main alone.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "worker/cli/compare.h"
#include "worker/train/json_out.h"

/* The report of `run`, and what compare makes of it; null where the run failed. */
static json_t *
run_json(const struct compare *c, const struct compare_run *r)
{
    struct report report = r->report;

    if (!r->done)
        return json_null();
    report.workers_detail = r->workers;
    json_t *o = report_json(&report);
    json_object_set_new(o, "seconds_to_target",
                        json_number(curve_seconds_to(&r->curve, c->target)));
    json_object_set_new(o, "curve", curve_json(&r->curve));
    return o;
}

static double
speed_up(const struct compare *c, const struct compare_entry *e)
{
    const struct report *r = &e->even.report, *local = &c->entries[0].even.report;

    if (!e->even.done || !c->entries[0].even.done || r->seconds <= 0 || local->samples == 0)
        return NAN;
    return (double)r->samples / r->seconds / ((double)local->samples / local->seconds);
}

static json_t *
entry_json(const struct compare *c, const struct compare_entry *e)
{
    const struct compare_run *failed = e->even.code ? &e->even : &e->slowed;
    json_t *o = json_object();

    json_object_set_new(o, "algorithm", json_string(e->algorithm->name));
    json_object_set_new(o, "exit_code", json_integer(failed->code));
    json_object_set_new(o, "speed_up", json_number(speed_up(c, e)));
    json_object_set_new(o, "runs", json_integer(e->n_runs));
    json_object_set_new(o, "loss_spread", json_number(e->most_loss - e->least_loss));
    json_object_set_new(o, "run", run_json(c, &e->even));
    json_object_set_new(o, "slowed", run_json(c, &e->slowed));
    json_object_set_new(o, "growth", json_number(compare_growth(e)));
    return o;
}

static json_t *
advice_json(const struct compare *c)
{
    struct advice advice[ADVICE_N];
    json_t *list = json_array();

    compare_advise(c, advice);
    for (unsigned i = 0; i < ADVICE_N; i++) {
        const struct compare_entry *e = advice[i].answer;
        json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "question", advice[i].question,
                                              "algorithm",
                                              e ? json_string(e->algorithm->name) : json_null(),
                                              "why", advice[i].why));
    }
    return list;
}

enum dt_status
compare_write_json(const struct compare *c, FILE *out, struct dt_error *err)
{
    json_t *o = json_object(), *entries = json_array();

    for (unsigned i = 0; i < c->n_entries; i++)
        json_array_append_new(entries, entry_json(c, &c->entries[i]));
    json_object_set_new(o, "target", json_number(c->target));
    json_object_set_new(o, "slow_rank", c->s->slow ? json_integer(c->slow_rank) : json_null());
    json_object_set_new(o, "algorithms", entries);
    json_object_set_new(o, "recommendations", advice_json(c));
    if (json_put_line(o, out) && fflush(out) == 0)
        return DT_OK;
    return dt_fail(err, DT_E_IO, "the report could not be written: %s",
                   errno ? strerror(errno) : "memory is short");
}
