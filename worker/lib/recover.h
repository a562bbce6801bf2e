/*
 * recover.h - sessions: HELLO, HELLO_REQUIRED, GOODBYE, heartbeats, and a ps task that is away. Private.
 */
#ifndef WORKER_LIB_RECOVER_H
#define WORKER_LIB_RECOVER_H

#include "worker/lib/connection.h"

void recover_start(struct connection *c, int64_t due_ms); /* the session is gone: HELLO at due_ms */
void recover_hello_reply(struct connection *c, struct dt_head *head, int64_t now);
void recover_goodbye(struct connection *c, const struct dt_head *head, int64_t now);
/* What time brings; returns when to come again. */
int64_t recover_tick(struct dtw_client *client, int64_t now);
/* Is there anything that an answer is awaited for? */
bool recover_is_busy(const struct dtw_client *client);

#endif
