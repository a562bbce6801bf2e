/*
 * watchdog.h - does every shard still turn? Main thread; it only reads the shards' turn counters.
 */
#ifndef PSD_DAEMON_WATCHDOG_H
#define PSD_DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire/limits.h"

struct watchdog {
    uint64_t seen[DT_MAX_SHARDS]; /* turns at the last check; 0: not checked yet */
    bool stuck[DT_MAX_SHARDS];    /* told already */
};

/* `turns` of shard `index` now. False when it has not turned since the last call; that is logged
 * once, and its return as well. */
bool watchdog_check(struct watchdog *w, uint32_t index, uint64_t turns);

#endif
