/*
 * untaken.c - meters of connections whose session has ended. Runs on the shard's thread.
 *
 * Invariant: an entry's connection has no session; the transport holds at least one metered reply of
 * it when the entry is made, so entries are bounded by what was sent.
 */
#include "psd/serve/untaken.h"

#include <stdlib.h>
#include <string.h>

struct untaken {
    struct untaken *next;
    struct session_key key;
    struct dt_meter *meter; /* one reference */
};

/* Unlinks; the caller has the meter's reference. */
static struct dt_meter *
take_out(struct untaken **at)
{
    struct untaken *u = *at;
    struct dt_meter *meter = u->meter;

    *at = u->next;
    free(u);
    return meter;
}

void
untaken_keep(struct shard *shard, const struct session_key *key, struct dt_meter *meter)
{
    struct untaken *u = NULL;

    if (atomic_load(&meter->messages) > 0)
        u = calloc(1, sizeof(*u));
    if (!u) {
        dt_meter_unref(meter);
        return;
    }
    u->key = *key;
    u->meter = meter;
    u->next = shard->untaken;
    shard->untaken = u;
}

struct dt_meter *
untaken_resume(struct shard *shard, const struct session_key *key)
{
    struct untaken **at;

    for (at = &shard->untaken; *at; at = &(*at)->next) {
        if (!memcmp(&(*at)->key, key, sizeof(*key)))
            return take_out(at);
    }
    return NULL;
}

void
untaken_tick(struct shard *shard)
{
    struct untaken **at = &shard->untaken;

    while (*at) {
        if (atomic_load(&(*at)->meter->messages) == 0)
            dt_meter_unref(take_out(at));
        else
            at = &(*at)->next;
    }
}

void
untaken_destroy(struct shard *shard)
{
    while (shard->untaken)
        dt_meter_unref(take_out(&shard->untaken));
}
