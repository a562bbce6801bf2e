/*
 * cluster_dir.h - the directory of a private cluster: its sockets, for as long as the cluster lives. What a cluster
 * leaves that was killed (SIGKILL, no power) the next one removes.
 *
 * Thread rule: the main thread alone. Nothing blocks.
 */
#ifndef CLI_CLUSTER_DIR_H
#define CLI_CLUSTER_DIR_H

#include "proto/base/error.h"

struct cluster_dir {
    char path[128]; /* "": none */
    int lock; /* owned; inherited by the children, so held while any of them lives; -1: none */
};

/* A new one in $TMPDIR (/tmp where that is unset or too long), after those of dead clusters of this user there have
 * been removed. DT_E_CANT_CREATE. */
enum dt_status cluster_dir_create(struct cluster_dir *d, struct dt_error *err);
/* With all that is in it. Idempotent. */
void cluster_dir_remove(struct cluster_dir *d);

#endif
