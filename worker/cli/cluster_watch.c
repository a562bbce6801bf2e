/*
 * cluster_watch.c - wait for the workers of a private cluster: their reports, their ends, psd's end.
 *
 * Rules: a worker that is killed or fails while the job runs is named and the job goes on without it; one that
 * fails before anything was trained ends the run; so does a psd that dies. Threads: main alone.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/cli/cluster.h"
#include "worker/cli/exit_code.h"
#include "worker/cli/stop.h"
#include "worker/train/order.h"

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
    w->samples = samples > 0 ? (uint64_t)samples : 0;
    c->started = c->started || json_integer_value(json_object_get(o, "step")) > 0;
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

/* Rows of a rank in the steps [from, to). */
static uint64_t
rows_between(const struct cluster *c, uint64_t rows, unsigned rank, uint64_t from, uint64_t to)
{
    struct order o = {c->s->seed, rows, c->n_workers, (uint32_t)c->s->batch};
    uint64_t sum = 0;

    for (uint64_t step = from; step < to; step++)
        sum += order_count(&o, step, rank);
    return sum;
}

static void
add_worker(struct report *all, const struct cluster_worker *w)
{
    const struct report *r = &w->report;

    if (!w->has_report) {
        all->samples += w->samples;
        return;
    }
    all->samples += r->samples;
    all->stale_dropped += r->stale_dropped;
    all->partial += r->partial;
    all->unseen_rows += r->unseen_rows;
    all->lives_lost += r->lives_lost;
    all->seconds = fmax(all->seconds, r->seconds);
    all->steps = r->steps > all->steps ? r->steps : all->steps;
    all->rows = r->rows > all->rows ? r->rows : all->rows;
    all->counted = all->counted || r->counted;
    all->rounds = r->rounds > all->rounds ? r->rounds : all->rounds;
    all->ps_stale = r->ps_stale > all->ps_stale ? r->ps_stale : all->ps_stale;
    all->ps_partial = r->ps_partial > all->ps_partial ? r->ps_partial : all->ps_partial;
    if (!isfinite(all->train_loss)) { /* the first rank that has it */
        all->train_loss = r->train_loss;
        all->test_loss = r->test_loss;
        all->test_accuracy = r->test_accuracy;
    }
}

bool
cluster_report(const struct cluster *c, struct report *out)
{
    bool any = false;

    *out = (struct report){.algorithm = c->s->algorithm,
                           .model = c->s->model,
                           .workers = c->n_workers,
                           .ps_tasks = c->n_ps,
                           .rank = -1,
                           .batch = c->s->batch,
                           .train_loss = NAN,
                           .test_loss = NAN,
                           .test_accuracy = NAN};
    for (unsigned i = 0; i < c->n_workers; i++) {
        add_worker(out, &c->workers[i]);
        any = any || c->workers[i].has_report;
    }
    for (unsigned i = 0; i < c->n_workers; i++) { /* what those did not see who ended early */
        const struct cluster_worker *w = &c->workers[i];
        uint64_t from = w->has_report ? w->report.steps : 0;
        uint64_t due = rows_between(c, out->rows, i, from, out->steps);
        uint64_t seen = w->has_report ? 0 : w->samples;
        out->unseen_rows += due > seen ? due - seen : 0;
    }
    return any;
}
