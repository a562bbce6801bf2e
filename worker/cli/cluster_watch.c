/*
 * cluster_watch.c - wait for the workers of a private cluster: their reports, their ends, psd's end.
 *
 * Rules: a worker that is killed or fails while the job runs is named and the job goes on without it; one that
 * fails before anything was trained ends the run; so does a psd that dies. Threads: main alone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/cli/cluster.h"
#include "worker/cli/exit_code.h"
#include "worker/cli/stop.h"
#include "worker/train/staleness_json.h"

#define WATCH_TICK_MS 500      /* also without an event */
#define REPORT_LINE_MAX 65536u /* of a worker's line */

/* One line of a worker: how far it is, or its final object. */
static void
take_line(struct cluster *c, struct cluster_worker *w, const char *line, size_t len)
{
    json_t *o = json_loadb(line, len, 0, NULL);

    if (!json_is_object(o)) {
        json_decref(o);
        return;
    }
    if (json_object_get(o, "algorithm")) {
        json_decref(w->document);
        w->document = o;
        report_from_json(&w->report, o);
        w->has_report = true;
        return;
    }
    json_int_t samples = json_integer_value(json_object_get(o, "samples"));
    json_int_t step = json_integer_value(json_object_get(o, "step"));
    w->samples = samples > 0 ? (uint64_t)samples : 0;
    w->step = step > 0 ? (uint64_t)step : 0;
    w->has_staleness = staleness_from_json(&w->staleness, json_object_get(o, "staleness"));
    c->started = c->started || step > 0;
    if (c->point)
        c->point(c->point_arg, (unsigned)(w - c->workers), o);
    json_decref(o);
}

static void
take_lines(struct cluster *c, struct cluster_worker *w)
{
    size_t used = 0;

    for (;;) {
        const char *start = (const char *)w->text.data + used;
        const char *end = w->text.len > used ? memchr(start, '\n', w->text.len - used) : NULL;
        if (!end)
            break;
        take_line(c, w, start, (size_t)(end - start));
        used += (size_t)(end - start) + 1;
    }
    if (used == 0)
        return;
    memmove(w->text.data, w->text.data + used, w->text.len - used);
    w->text.len -= used;
}

/* Read what there is. */
static void
read_reports(struct cluster *c, struct cluster_worker *w)
{
    char piece[4096];

    w->text.limit = REPORT_LINE_MAX;
    while (w->report_fd >= 0) {
        ssize_t n = read(w->report_fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0 || !dt_buffer_append(&w->text, piece, (size_t)n)) {
            close(w->report_fd);
            w->report_fd = -1;
            return;
        }
        take_lines(c, w);
    }
}

static void
fail_with(struct cluster *c, int code)
{
    if (c->code == 0)
        c->code = code;
}

static void
stop_all(struct cluster *c)
{
    for (unsigned i = 0; i < c->n_workers; i++) {
        c->workers[i].stopped |= child_is_running(&c->workers[i].child);
        child_signal(&c->workers[i].child, SIGTERM);
    }
}

static void
worker_ended(struct cluster *c, struct cluster_worker *w)
{
    char how[64];
    bool killed = !WIFEXITED(w->child.status);

    if (w->stopped || (!killed && WEXITSTATUS(w->child.status) == 0))
        return;
    dt_log(DT_LOG_ERR, "%s (process %d) ended with %s%s", w->child.name, (int)w->child.pid,
           child_end_text(&w->child, how, sizeof(how)),
           killed ? ": the others go on without it" : "");
    fail_with(c, killed ? EXIT_CODE_TEMPORARY : WEXITSTATUS(w->child.status));
    if (!killed && !c->started)
        stop_all(c); /* it never took part: the others would wait for it */
}

static void
psd_ended(struct cluster *c, struct child *psd)
{
    char how[64];

    if (WIFEXITED(psd->status) && WEXITSTATUS(psd->status) == 0)
        return; /* its job is complete */
    dt_log(DT_LOG_ERR, "%s (process %d) ended with %s: the run is stopped", psd->name,
           (int)psd->pid, child_end_text(psd, how, sizeof(how)));
    fail_with(c, EXIT_CODE_TEMPORARY);
    stop_all(c);
}

/* Take what has happened; true: all workers have ended. */
static bool
look(struct cluster *c)
{
    bool all = true;

    for (unsigned i = 0; i < c->n_ps; i++) {
        if (child_is_running(&c->ps[i]) && child_reap(&c->ps[i]))
            psd_ended(c, &c->ps[i]);
    }
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct cluster_worker *w = &c->workers[i];
        bool running = child_is_running(&w->child);
        bool ended = child_reap(&w->child);
        read_reports(c, w); /* after the reap: everything is in the pipe then */
        if (running && ended)
            worker_ended(c, w);
        all = all && ended;
    }
    return all;
}

static nfds_t
watch_list(const struct cluster *c, struct pollfd *p)
{
    nfds_t n = 0;

    p[n++] = (struct pollfd){stop_fd(), POLLIN, 0};
    for (unsigned i = 0; i < c->n_ps; i++)
        p[n++] = (struct pollfd){c->ps[i].pidfd, POLLIN, 0};
    for (unsigned i = 0; i < c->n_workers; i++) {
        p[n++] = (struct pollfd){c->workers[i].child.pidfd, POLLIN, 0};
        p[n++] = (struct pollfd){c->workers[i].report_fd, POLLIN, 0};
    }
    return n;
}

bool
cluster_watch(struct cluster *c)
{
    struct pollfd *p = calloc(1 + c->n_ps + 2 * (size_t)c->n_workers, sizeof(*p));
    bool done = false;

    if (!p) {
        fail_with(c, dt_status_exit_code(DT_E_NO_MEMORY));
        return true;
    }
    while (!done && stop_signal() == 0) {
        poll(p, watch_list(c, p), WATCH_TICK_MS);
        done = look(c);
    }
    free(p);
    return done;
}
