/*
 * untaken.h - meters of connections whose session has ended while data replies were still under way.
 *
 * A peer that does not read may say HELLO again and again: what it has not taken counts on.
 */
#ifndef PSD_SERVE_UNTAKEN_H
#define PSD_SERVE_UNTAKEN_H

#include "psd/serve/session.h"

/* A session of the connection `key` ends: remember what it has not taken. Takes the meter. */
void untaken_keep(struct shard *shard, const struct session_key *key, struct dt_meter *meter);
/* The meter of the connection, now the caller's; NULL: everything was taken. */
struct dt_meter *untaken_resume(struct shard *shard, const struct session_key *key);
/* Forget connections that have taken everything or are gone. */
void untaken_tick(struct shard *shard);
void untaken_destroy(struct shard *shard);

#endif
