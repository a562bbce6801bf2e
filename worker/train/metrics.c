/*
 * metrics.c - JSON lines about a training, one write a line.
 */
#include "worker/train/metrics.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "worker/train/staleness_json.h"

struct metrics {
    FILE *out; /* owned */
    int64_t interval_ms;
    int64_t next_ms;
    int error; /* errno of the first line that could not be written */
    char name[256];
};

static enum dt_status
create(FILE *out, const char *name, int64_t interval_ms, struct metrics **m, struct dt_error *err)
{
    *m = NULL;
    if (!out)
        return dt_fail(err, DT_E_CANT_CREATE, "metrics file %s: %s", name, strerror(errno));
    *m = calloc(1, sizeof(**m));
    if (!*m) {
        fclose(out);
        return dt_fail(err, DT_E_NO_MEMORY, "metrics file %s: memory is short", name);
    }
    (*m)->out = out;
    (*m)->interval_ms = interval_ms;
    snprintf((*m)->name, sizeof((*m)->name), "%s", name);
    return DT_OK;
}

enum dt_status
metrics_open(const char *path, int64_t interval_ms, struct metrics **out, struct dt_error *err)
{
    return create(fopen(path, "we"), path, interval_ms, out, err);
}

enum dt_status
metrics_open_fd(int fd, int64_t interval_ms, struct metrics **out, struct dt_error *err)
{
    return create(fdopen(fd, "w"), "of --report-fd", interval_ms, out, err);
}

/* A number, or null where there is none. */
static json_t *
number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *
line_of(const struct loop_point *p)
{
    double rate = p->seconds > 0 ? (double)p->samples / p->seconds : 0;

    return json_pack("{s:I, s:I, s:o, s:o, s:I, s:f, s:I, s:I, s:o}", "step", (json_int_t)p->step,
                     "epoch", (json_int_t)p->epoch, "loss", number(p->loss), "accuracy",
                     number(p->accuracy), "samples", (json_int_t)p->samples, "samples_per_second",
                     rate, "stale", (json_int_t)p->stale, "partial", (json_int_t)p->partial,
                     "staleness", staleness_json(p->staleness));
}

void
metrics_point(struct metrics *m, const struct loop_point *point, bool last)
{
    if (!m || m->error)
        return;
    int64_t now = dt_now_ms();
    if (!point->epoch_end && !last && now < m->next_ms)
        return;
    m->next_ms = now + m->interval_ms;
    json_t *line = line_of(point);
    if (!line || json_dumpf(line, m->out, JSON_COMPACT | JSON_REAL_PRECISION(10)) != 0 ||
        fputc('\n', m->out) == EOF || fflush(m->out) != 0)
        m->error = errno ? errno : EIO;
    json_decref(line);
}

enum dt_status
metrics_close(struct metrics *m, struct dt_error *err)
{
    enum dt_status s = DT_OK;

    if (!m)
        return DT_OK;
    if (fclose(m->out) != 0 && !m->error)
        m->error = errno;
    if (m->error)
        s = dt_fail(err, DT_E_IO, "metrics file %s: %s", m->name, strerror(m->error));
    free(m);
    return s;
}
