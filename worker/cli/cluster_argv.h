/*
 * cluster_argv.h - the command lines of a private cluster's processes.
 */
#ifndef CLI_CLUSTER_ARGV_H
#define CLI_CLUSTER_ARGV_H

#include "worker/cli/cluster.h"

#define CLUSTER_MAX_ARGV 128

struct cluster_argv {              /* zero-initialise */
    char *v[CLUSTER_MAX_ARGV + 1]; /* owned; NULL-terminated */
    unsigned n;
    bool failed;
};

/* One more text; what does not fit sets `failed`. */
void cluster_argv_add(struct cluster_argv *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* False when memory is short. */
bool cluster_argv_psd(struct cluster_argv *a, const struct cluster *c, unsigned index);
bool cluster_argv_worker(struct cluster_argv *a, const struct cluster *c, unsigned rank,
                         int report_fd);
void cluster_argv_deinit(struct cluster_argv *a);

#endif
