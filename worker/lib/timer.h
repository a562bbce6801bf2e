/*
 * timer.h - what time brings to connections and ps tasks. Private.
 */
#ifndef WORKER_LIB_TIMER_H
#define WORKER_LIB_TIMER_H

#include "worker/lib/connection.h"

int64_t timer_tick(struct dtw_client *client, int64_t now); /* returns when to come again */
/* Is there anything that an answer is awaited for? */
bool timer_is_busy(const struct dtw_client *client);

#endif
