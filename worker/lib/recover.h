/*
 * recover.h - sessions: HELLO, HELLO_REQUIRED, GOODBYE. Private.
 */
#ifndef WORKER_LIB_RECOVER_H
#define WORKER_LIB_RECOVER_H

#include "worker/lib/connection.h"

void recover_start(struct connection *c, int64_t due_ms); /* the session is gone: HELLO at due_ms */
void recover_say_hello(struct connection *c, int64_t now);
void recover_hello_reply(struct connection *c, struct dt_head *head, int64_t now);
void recover_goodbye(struct connection *c, const struct dt_head *head, int64_t now);
#endif
