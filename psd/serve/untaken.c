/*
 * untaken.c - meters of connections whose session has ended. Runs on the shard's thread.
 *
 * Invariant: an entry's connection has no session; the transport holds at least one metered reply of
 * it when the entry is made, so entries are bounded by what was sent.
 */
#include "psd/serve/untaken.h"

#include <stdlib.h>

struct untaken {
    struct session_key key;
    struct dt_meter *meter; /* one reference */
    UT_hash_handle hh;
};

static void
destroy(struct shard *shard, struct untaken *u)
{
    HASH_DEL(shard->untaken, u);
    dt_meter_unref(u->meter);
    free(u);
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
    HASH_ADD(hh, shard->untaken, key, sizeof(u->key), u);
}

struct dt_meter *
untaken_resume(struct shard *shard, const struct session_key *key)
{
    struct dt_meter *meter;
    struct untaken *u;

    HASH_FIND(hh, shard->untaken, key, sizeof(*key), u);
    if (!u)
        return NULL;
    meter = dt_meter_ref(u->meter);
    destroy(shard, u);
    return meter;
}

void
untaken_tick(struct shard *shard)
{
    struct untaken *u, *next;

    for (u = shard->untaken; u; u = next) {
        next = u->hh.next;
        if (atomic_load(&u->meter->messages) == 0)
            destroy(shard, u);
    }
}

void
untaken_destroy(struct shard *shard)
{
    while (shard->untaken)
        destroy(shard, shard->untaken);
}
