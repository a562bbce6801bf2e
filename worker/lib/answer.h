/*
 * answer.h - what psd sends: from a received message to its request. Private.
 */
#ifndef WORKER_LIB_ANSWER_H
#define WORKER_LIB_ANSWER_H

#include "worker/lib/connection.h"

void answer_take(struct connection *c, const struct dt_message *message, int64_t now);

#endif
