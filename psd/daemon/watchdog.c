/*
 * watchdog.c - compares turn counters. Main thread.
 */
#include "psd/daemon/watchdog.h"

#include "proto/base/log.h"

bool
watchdog_check(struct watchdog *w, uint32_t index, uint64_t turns)
{
    bool moved = turns != w->seen[index];

    w->seen[index] = turns;
    if (!moved && !w->stuck[index])
        dt_log(DT_LOG_ERR, "shard %u is stuck: it has not turned since the last check", index);
    else if (moved && w->stuck[index])
        dt_log(DT_LOG_NOTICE, "shard %u turns again", index);
    w->stuck[index] = !moved;
    return moved;
}
