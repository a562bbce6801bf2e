/*
 * set.h - SET changes a live job's setting.
 *
 * SET  request [key, value]  reply [value in force]
 * keys: "stop_step": the global step at which workers stop; the least one that was set counts.
 */
#ifndef DT_WIRE_SET_H
#define DT_WIRE_SET_H

#include "proto/wire/envelope.h"

struct dt_set {
    char key[24];
    uint64_t value;
};

void dt_set_encode(struct dt_buffer *b, uint64_t request, uint64_t session, const struct dt_set *m);
enum dt_status dt_set_decode(struct dt_head *head, struct dt_set *m);
/* The reply's one field is dt_step_reply_encode's `step` with DT_OP_SET. */

#endif
