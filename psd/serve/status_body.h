/*
 * status_body.h - the body of ADMIN_STATUS: what psctl status shows. Format: psd-protocol(7), ADMIN.
 */
#ifndef PSD_SERVE_STATUS_BODY_H
#define PSD_SERVE_STATUS_BODY_H

#include "psd/serve/shard.h"

/* Append one msgpack map for each parked request of the job on this shard (at most 256); returns how many. */
uint32_t status_waiting(const struct shard *shard, const struct view *view, struct dt_buffer *body);

/* The map of a job's counters. */
void status_counters(const struct job *job, struct dt_buffer *body);

#endif
