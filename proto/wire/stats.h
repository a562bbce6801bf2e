/*
 * stats.h - STATS and the admin verbs. Replies carry one body frame.
 *
 * STATS          request []           reply body: map name -> integer (counters of the session's job)
 * ADMIN_STATUS   request []           reply body: map, see psd-protocol(7) ADMIN
 * ADMIN_KICK     request [job, rank]  reply []
 * ADMIN_SHUTDOWN request []           reply []
 */
#ifndef DT_WIRE_STATS_H
#define DT_WIRE_STATS_H

#include "proto/wire/envelope.h"

struct dt_kick {
    char job[DT_MAX_NAME + 1];
    uint32_t rank;
};

void dt_simple_encode(struct dt_buffer *b, enum dt_op op, uint64_t request,
                      uint64_t session); /* no fields */
void dt_kick_encode(struct dt_buffer *b, uint64_t request, const struct dt_kick *m);
enum dt_status dt_kick_decode(struct dt_head *head, struct dt_kick *m);

#endif
