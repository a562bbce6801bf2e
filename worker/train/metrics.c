/*
 * metrics.c - JSON lines about a training, one write a line.
 *
 * Invariant: until the first line an older file is as it was, and one that we made goes again at the close.
 */
#include "worker/train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "worker/train/json_out.h"
#include "worker/train/phases_json.h"
#include "worker/train/staleness_json.h"

struct metrics {
    FILE *out; /* owned */
    int64_t interval_ms;
    int64_t next_ms;
    int error;       /* errno of the first line that could not be written */
    bool started;    /* a line was written, or tried */
    bool made;       /* the file was not there before */
    double loss_sum; /* over the points since the last line */
    uint64_t n_losses;
    char *path; /* owned; NULL: not ours */
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

/* Not truncated yet. A pipe must have its reader (ENXIO): nobody waits for one. */
static int
open_file(const char *path, bool *made)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    int fd = open(path, flags | O_EXCL, 0666);

    *made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, flags, 0666);
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static enum dt_status
create_file(int fd, const char *path, int64_t interval_ms, struct metrics **m, struct dt_error *err)
{
    FILE *out = fdopen(fd, "w");

    if (!out) {
        int why = errno;
        close(fd);
        return dt_fail(err, DT_E_CANT_CREATE, "metrics file %s: %s", path, strerror(why));
    }
    enum dt_status s = create(out, path, interval_ms, m, err);
    if (s != DT_OK)
        return s;
    (*m)->path = strdup(path);
    if ((*m)->path)
        return DT_OK;
    metrics_close(*m, NULL);
    *m = NULL;
    return dt_fail(err, DT_E_NO_MEMORY, "metrics file %s: memory is short", path);
}

enum dt_status
metrics_open(const char *path, int64_t interval_ms, struct metrics **out, struct dt_error *err)
{
    bool made;
    int fd = open_file(path, &made);

    *out = NULL;
    if (fd < 0)
        return dt_fail(err, DT_E_CANT_CREATE, "metrics file %s: %s", path, strerror(errno));
    enum dt_status s = create_file(fd, path, interval_ms, out, err);
    if (s == DT_OK)
        (*out)->made = made;
    else if (made)
        unlink(path);
    return s;
}

enum dt_status
metrics_open_fd(int fd, int64_t interval_ms, struct metrics **out, struct dt_error *err)
{
    return create(fdopen(fd, "w"), "of --report-fd", interval_ms, out, err);
}

static json_t *
line_of(const struct loop_point *p, double mean_loss)
{
    double rate = p->seconds > 0 ? (double)p->samples / p->seconds : 0;

    return json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:f, s:I, s:f, s:o, s:I, s:I, s:o}", "step", (json_int_t)p->step,
        "epoch", (json_int_t)p->epoch, "loss", json_number(p->loss), "mean_loss",
        json_number(mean_loss), "accuracy", json_number(p->accuracy), "seconds", p->seconds,
        "samples", (json_int_t)p->samples, "samples_per_second", rate, "time",
        p->phases ? phases_json(p->phases) : json_null(), "stale", (json_int_t)p->stale, "partial",
        (json_int_t)p->partial, "staleness", staleness_json(p->staleness));
}

/* What an older file held goes with the first line. */
static int
start_file(struct metrics *m)
{
    struct stat st;

    m->started = true;
    if (!m->path || m->made || fstat(fileno(m->out), &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    return ftruncate(fileno(m->out), 0) == 0 ? 0 : errno;
}

void
metrics_point(struct metrics *m, const struct loop_point *point, bool last)
{
    if (!m || m->error)
        return;
    if (!last) { /* else the point came before */
        m->loss_sum += isfinite(point->loss) ? point->loss : 0;
        m->n_losses += isfinite(point->loss);
    }
    int64_t now = dt_now_ms();
    if (!point->epoch_end && !last && now < m->next_ms)
        return;
    m->next_ms = now + m->interval_ms;
    if (!m->started && (m->error = start_file(m)) != 0)
        return;
    json_t *line = line_of(point, m->n_losses ? m->loss_sum / (double)m->n_losses : (double)NAN);
    m->loss_sum = 0;
    m->n_losses = 0;
    if (!json_put_line(line, m->out) || fflush(m->out) != 0)
        m->error = errno ? errno : EIO;
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
    if (m->path && m->made && !m->started)
        unlink(m->path);
    free(m->path);
    free(m);
    return s;
}
