/*
 * cluster.h - a private cluster on this machine: psd processes and workers over ipc in a directory of
 * their own. Nothing is left behind: no process, socket or directory.
 *
 * Thread rule: the main thread alone. Every function blocks for a bounded time but cluster_watch, which
 * ends with the workers or with a signal.
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "proto/base/buffer.h"
#include "worker/cli/child.h"
#include "worker/cli/cluster_dir.h"
#include "worker/cli/report.h"
#include "worker/cli/settings.h"

#define CLUSTER_WORKER_STOP_MS 5000
#define CLUSTER_PSD_STOP_MS 7000 /* psd's own stop-timeout is 5 s */
#define CLUSTER_JOB "run"

struct cluster_worker {
    struct child child;
    int report_fd;         /* -1: closed */
    struct dt_buffer text; /* what came and is no whole line yet */
    bool stopped;          /* by us: how it ended says nothing */
    bool has_report;
    json_t *document; /* owned; the final object, which `report` borrows from */
    struct report report;
    uint64_t samples; /* these as last heard */
    uint64_t step;
    bool has_staleness;
    struct staleness staleness;
};

struct cluster {
    const struct settings *s;
    bool quiet; /* rank 0 does not talk to the user */
    void (*point)(void *arg, unsigned rank, const json_t *line); /* of what a worker reports on its
                                                                  * way (metrics.h); may be NULL */
    void *point_arg;
    unsigned n_ps;
    unsigned n_workers;
    struct child *ps;               /* owned */
    struct cluster_worker *workers; /* owned */
    struct cluster_dir directory;   /* owned */
    char self[4096];                /* this program */
    char psd[4096];                 /* the psd program */
    bool started; /* a worker has done a step: from here on losses are the job's affair */
    int code;     /* exit code of the first that went wrong, 0: none did */
};

enum dt_status cluster_create(const struct settings *s, struct cluster **out, struct dt_error *err);
/* psd first, then the workers. */
enum dt_status cluster_start(struct cluster *c, struct dt_error *err);
/* Until all workers have ended (true) or a signal came (false). */
bool cluster_watch(struct cluster *c);
/* Start, watch and stop. *done: all workers have ended, else a signal came. What went wrong with a process is in
 * `code`. */
enum dt_status cluster_run(struct cluster *c, bool *done, struct dt_error *err);
/* Workers first, psd last, then the directory. Idempotent. */
void cluster_stop(struct cluster *c);
/* All workers together. False: none has reported. */
bool cluster_report(const struct cluster *c, struct report *out);
/* What each did, a new array in the order of ranks; of one that sent no report (killed) what was heard last. */
json_t *cluster_detail(const struct cluster *c);
void cluster_destroy(struct cluster *c); /* NULL-safe; stops */

#endif
