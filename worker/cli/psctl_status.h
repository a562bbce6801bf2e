/*
 * psctl_status.h - the body of ADMIN_STATUS as JSON, and as text for people.
 */
#ifndef WORKER_CLI_PSCTL_STATUS_H
#define WORKER_CLI_PSCTL_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "proto/base/buffer.h"

/* Any msgpack body to JSON (keys that are not known come along); NULL when it is not legal. Owned by
 * the caller. The incarnation becomes a string of 16 hex digits; "no version" becomes null. */
json_t *status_decode(const struct dt_buffer *body);

/* One block a job, one line a member, one line a wait. Missing keys are tolerated. */
void status_print(const json_t *status, FILE *out);

#endif
