/*
 * psctl_placement.h - `psctl placement`: the variables of a job and where this psd holds them.
 */
#ifndef WORKER_CLI_PSCTL_PLACEMENT_H
#define WORKER_CLI_PSCTL_PLACEMENT_H

#include <jansson.h>
#include <stdio.h>

#include "worker/cli/psctl_ask.h"

/* All pages of one job put together: {"name", "ps_task", "ps_tasks", "shards", "locking", "variables":
 * [...], "shard_slices", "shard_bytes": [sums of this psd]}. *out is owned by the caller. DT_R_NO_JOB
 * with psd's sentence; DT_E_PROTOCOL; DT_E_TEMPORARY when the job was replaced meanwhile. */
enum dt_status placement_fetch(struct psctl *c, const char *job, json_t **out,
                               struct dt_error *err);

/* One line a variable, and the sums. Missing keys are tolerated. */
void placement_print(const json_t *job, FILE *out);

#endif
