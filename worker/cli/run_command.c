/*
 * run_command.c - dtworker run: a private cluster, from its start to one report. Threads: main alone.
 */
#include <math.h>

#include "proto/base/descriptors.h"
#include "proto/base/plural.h"
#include "worker/cli/cluster.h"
#include "worker/cli/command.h"
#include "worker/cli/stop.h"

#define RUN_DESCRIPTORS 64

static void
start_line(const struct cluster *c, FILE *out)
{
    fprintf(out, "private cluster: %u psd, %u worker%s\n", c->n_ps, c->n_workers,
            dt_plural(c->n_workers));
    fflush(out);
}

static int
report(struct cluster *c)
{
    struct dt_error err = {DT_OK, ""};
    struct report all;

    if (!cluster_report(c, &all))
        return c->code != 0 ? c->code : dt_status_exit_code(DT_E_TEMPORARY);
    enum dt_status r = DT_OK;
    all.workers_detail = cluster_detail(c);
    if (c->s->json)
        r = report_write_json(&all, stdout, &err);
    else if (isfinite(all.train_loss))
        report_write_text(&all, stdout);
    json_decref(all.workers_detail);
    if (r != DT_OK)
        return command_fail(r, &err);
    return c->code;
}

int
run_command(struct settings *s, char **positional)
{
    struct dt_error err = {DT_OK, ""};
    struct cluster *c = NULL;
    bool done = false;
    int code;

    (void)positional;
    enum dt_status r = settings_check_run(s, &err);
    if (r == DT_OK) /* before psd and workers are there, of which each would say it */
        r = train_check(s, &err);
    if (r == DT_OK)
        r = stop_open(&err);
    if (r == DT_OK) /* what psd asks for, the others need less */
        r = dt_descriptors_check(RUN_DESCRIPTORS + 4 * (unsigned)s->workers, "dtworker run", &err);
    if (r == DT_OK)
        r = cluster_create(s, &c, &err);
    if (r == DT_OK) {
        start_line(c, s->json ? stderr : stdout);
        r = cluster_run(c, &done, &err);
    }
    code = r != DT_OK ? command_fail(r, &err) : done ? report(c) : c->code;
    cluster_destroy(c);
    return stop_signal() != 0 && !done ? stop_raise() : code;
}
