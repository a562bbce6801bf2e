/*
 * cluster.c - make, start and stop a private cluster. Watching it stands in cluster_watch.c.
 *
 * Invariant: whatever was started is in `ps` or `workers` before anything else can fail, so
 * cluster_stop ends it. Threads: main alone.
 */
#include "worker/cli/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/cli/cluster_argv.h"
#include "worker/cli/program.h"

/* psd stands beside this program (build), in ../sbin (installed), or in PATH. */
static enum dt_status
find_programs(struct cluster *c, struct dt_error *err)
{
    ssize_t n = readlink("/proc/self/exe", c->self, sizeof(c->self) - 1);
    if (n <= 0)
        return dt_fail(err, DT_E_INTERNAL, "/proc/self/exe: %s", strerror(errno));
    c->self[n] = '\0';
    size_t dir = (size_t)(strrchr(c->self, '/') - c->self);
    if (program_in(c->self, dir, "psd", c->psd, sizeof(c->psd)) ||
        program_in(c->self, dir, "../sbin/psd", c->psd, sizeof(c->psd)) ||
        program_in_path("psd", c->psd, sizeof(c->psd)))
        return DT_OK;
    return dt_fail(err, DT_E_NO_INPUT,
                   "the program psd is neither beside %s nor in ../sbin nor in PATH", c->self);
}

enum dt_status
cluster_create(const struct settings *s, struct cluster **out, struct dt_error *err)
{
    struct cluster *c = calloc(1, sizeof(*c));

    *out = NULL;
    if (!c)
        return dt_fail(err, DT_E_NO_MEMORY, "private cluster: memory is short");
    c->s = s;
    c->directory.lock = -1;
    c->n_ps = algorithm_needs_ps(settings_algorithm(s)) ? (unsigned)s->ps_tasks : 0;
    c->n_workers = (unsigned)s->workers;
    c->ps = calloc(c->n_ps ? c->n_ps : 1, sizeof(*c->ps));
    c->workers = calloc(c->n_workers, sizeof(*c->workers));
    for (unsigned i = 0; c->workers && i < c->n_workers; i++)
        c->workers[i].report_fd = -1;
    enum dt_status r = DT_OK;
    if (!c->ps || !c->workers)
        r = dt_fail(err, DT_E_NO_MEMORY, "private cluster: memory is short");
    if (r == DT_OK)
        r = find_programs(c, err);
    if (r == DT_OK)
        r = cluster_dir_create(&c->directory, err);
    if (r != DT_OK) {
        cluster_destroy(c);
        return r;
    }
    *out = c;
    return DT_OK;
}

static enum dt_status
start_psd(struct cluster *c, unsigned index, int null_fd, struct dt_error *err)
{
    struct cluster_argv argv = {0};
    char name[32];

    snprintf(name, sizeof(name), "psd %u", index);
    if (!cluster_argv_psd(&argv, c, index)) {
        cluster_argv_deinit(&argv);
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", name);
    }
    struct child_plan plan = {c->psd, argv.v, null_fd, -1, true};
    enum dt_status r = child_start(&c->ps[index], name, &plan, err);
    cluster_argv_deinit(&argv);
    return r;
}

/* Rank 0 talks to the user; the others only report. */
static enum dt_status
start_worker(struct cluster *c, unsigned rank, int null_fd, struct dt_error *err)
{
    struct cluster_worker *w = &c->workers[rank];
    struct cluster_argv argv = {0};
    char name[32];
    int fds[2];

    snprintf(name, sizeof(name), "worker %u", rank);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return dt_fail(err, DT_E_INTERNAL, "%s: pipe: %s", name, strerror(errno));
    w->report_fd = fds[0];
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    enum dt_status r = DT_OK;
    if (!cluster_argv_worker(&argv, c, rank, fds[1]))
        r = dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", name);
    int out = rank > 0 || c->quiet ? null_fd : c->s->json ? STDERR_FILENO : -1;
    struct child_plan plan = {c->self, argv.v, out, fds[1], false};
    if (r == DT_OK)
        r = child_start(&w->child, name, &plan, err);
    cluster_argv_deinit(&argv);
    close(fds[1]);
    return r;
}

enum dt_status
cluster_start(struct cluster *c, struct dt_error *err)
{
    enum dt_status r = DT_OK;
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null_fd < 0)
        return dt_fail(err, DT_E_INTERNAL, "/dev/null: %s", strerror(errno));
    for (unsigned i = 0; r == DT_OK && i < c->n_ps; i++)
        r = start_psd(c, i, null_fd, err);
    for (unsigned i = 0; r == DT_OK && i < c->n_workers; i++)
        r = start_worker(c, i, null_fd, err);
    close(null_fd);
    return r;
}

/* SIGTERM, at most CLUSTER_WORKER_STOP_MS to leave the job, SIGKILL. */
static void
stop_workers(struct cluster *c)
{
    int64_t ms = CLUSTER_WORKER_STOP_MS;

    for (unsigned i = 0; i < c->n_workers; i++) {
        c->workers[i].stopped |= child_is_running(&c->workers[i].child);
        child_signal(&c->workers[i].child, SIGTERM);
    }
    for (unsigned i = 0; i < c->n_workers; i++) {
        if (!children_wait(&c->workers[i].child, 1, ms)) {
            child_signal(&c->workers[i].child, SIGKILL);
            children_wait(&c->workers[i].child, 1, CLUSTER_WORKER_STOP_MS);
            ms = 0; /* the time is over for the others, too */
        }
    }
}

void
cluster_stop(struct cluster *c)
{
    stop_workers(c);
    /* After a good end psd --once ends by itself. */
    if (c->code != 0 || !children_wait(c->ps, c->n_ps, CLUSTER_PSD_STOP_MS))
        children_stop(c->ps, c->n_ps, SIGTERM, CLUSTER_PSD_STOP_MS);
    cluster_dir_remove(&c->directory);
}

enum dt_status
cluster_run(struct cluster *c, bool *done, struct dt_error *err)
{
    enum dt_status r = cluster_start(c, err);

    *done = r == DT_OK && cluster_watch(c);
    if (!*done && c->code == 0)
        c->code = dt_status_exit_code(r == DT_OK ? DT_E_TEMPORARY : r);
    cluster_stop(c);
    return r;
}

void
cluster_destroy(struct cluster *c)
{
    if (!c)
        return;
    if (c->ps && c->workers)
        cluster_stop(c);
    for (unsigned i = 0; c->workers && i < c->n_workers; i++) {
        if (c->workers[i].report_fd >= 0)
            close(c->workers[i].report_fd);
        dt_buffer_deinit(&c->workers[i].text);
        json_decref(c->workers[i].document);
    }
    free(c->ps);
    free(c->workers);
    free(c);
}
