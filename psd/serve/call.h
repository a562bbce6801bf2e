/*
 * call.h - one request on its way through its handler, and the table of handlers.
 */
#ifndef PSD_SERVE_CALL_H
#define PSD_SERVE_CALL_H

#include "proto/wire/data.h"
#include "psd/serve/session.h"

struct call {
    struct shard *shard;
    const struct request *req;
    struct dt_head head;
    struct reply_to to;
    uint64_t payload_bytes;
    struct session *session; /* NULL for HELLO and admin verbs */
    int64_t now;
    struct outbox *out;
};

typedef void handler_fn(struct call *c);

/* Answer the pull half at once, or park it. `results` are the fates of the push half, or NULL. pull.c */
void pull_or_park(struct call *c, const struct dt_data *data, const struct dt_data_result *results);

handler_fn handle_hello, handle_join, handle_leave, handle_heartbeat, handle_declare, handle_init,
    handle_init_done, handle_clock, handle_wait_step, handle_set, handle_stats, handle_goodbye,
    handle_push, handle_pull, handle_pushpull, handle_admin_status, handle_admin_kick,
    handle_admin_shutdown, handle_admin_placement, handle_admin_set;

/* The slice of an item, if this shard serves it for the session; NULL else. */
struct slice *call_find_slice(const struct call *c, const struct dt_item *item);
/* The session's control job on shard 0, NULL after it was replaced. */
struct control_job *call_job(const struct call *c);
/* Is the job open for training? If not the answer has been sent. */
bool call_require_open(struct call *c);
/* The session must be a worker's (not a reader's). If not the answer has been sent. */
bool call_require_worker(struct call *c);
/* Shard 0: and that worker must be one of the job's: it has not left and was not turned away. */
bool call_require_present(struct call *c, const struct control_job *job);

#endif
