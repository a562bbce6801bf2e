/*
 * shard_endpoint.h - where the shards of a psd listen for one endpoint that its user named. Any thread.
 */
#ifndef PSD_DAEMON_SHARD_ENDPOINT_H
#define PSD_DAEMON_SHARD_ENDPOINT_H

#include "proto/wire/limits.h"
#include "psd/daemon/config.h"

/* The endpoint that a shard binds: `asked` for shard 0, after it PATH.1, PATH.2, ..., the ports that follow that
 * of `first` (asked, as shard 0 has bound it; shard_ports = consecutive), or port 0. DT_E_CONFIG: the path is
 * too long, or there is no such port. */
enum dt_status shard_endpoint(const struct config *c, const char *asked, const char *first,
                              uint32_t shard, char out[DT_MAX_ENDPOINT + 1], struct dt_error *err);

#endif
