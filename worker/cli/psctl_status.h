/*
 * psctl_status.h - the body of ADMIN_STATUS as text for people.
 */
#ifndef WORKER_CLI_PSCTL_STATUS_H
#define WORKER_CLI_PSCTL_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "worker/cli/psctl_body.h"

/* One line a shard, one block a job, one line a member, one line a wait. Missing keys are tolerated. */
void status_print(const json_t *status, FILE *out);

#endif
