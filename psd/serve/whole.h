/*
 * whole.h - locking variable: a message moves whole variables.
 */
#ifndef PSD_SERVE_WHOLE_H
#define PSD_SERVE_WHOLE_H

#include "proto/wire/data.h"
#include "psd/store/job.h"

/* Does it name all slices of each of its variables once, a push all at one version? All its items are slices of the
 * job on this shard. Always true in a job with another locking. */
bool whole_is_covered(const struct job *job, const struct dt_data *m, bool is_push);

#define WHOLE_TEXT                                                                                 \
    "locking variable: name all slices of a variable once, and push them at one version"

#endif
