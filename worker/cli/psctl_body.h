/*
 * psctl_body.h - the body of psd's answers as JSON, and how to read it.
 */
#ifndef WORKER_CLI_PSCTL_BODY_H
#define WORKER_CLI_PSCTL_BODY_H

#include <jansson.h>

#include "proto/base/buffer.h"

/* Any msgpack body to JSON (keys that are not known come along); NULL when it is not legal. Owned by
 * the caller. The incarnation becomes a string of 16 hex digits; "no version" becomes null. */
json_t *body_decode(const struct dt_buffer *body);

/* What stands under `key`; "" and 0 where nothing does. */
const char *body_text(const json_t *o, const char *key);
long long body_number(const json_t *o, const char *key);

#endif
