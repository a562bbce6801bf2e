/*
 * member.h - membership. Private.
 */
#ifndef WORKER_LIB_MEMBER_H
#define WORKER_LIB_MEMBER_H

#include "worker/lib/client.h"

/* JOIN on all ps tasks where one of them asks for it; *first_step. Lock held. */
enum dtw_status member_join(struct dtw_client *client, uint64_t *first_step, struct dtw_error *err);

#endif
