/*
 * reply.h - making replies. A request that cannot be answered at once keeps a struct reply_to.
 */
#ifndef PSD_SERVE_REPLY_H
#define PSD_SERVE_REPLY_H

#include "proto/wire/member.h"
#include "psd/serve/serve.h"

struct reply_to { /* where and to what an answer goes */
    enum peer_class peer_class;
    struct dt_route route;
    unsigned op;
    uint64_t request;
    uint64_t session;
};

/* An empty reply to `to` with room for a header; NULL when memory is short. */
struct reply *reply_create(const struct reply_to *to);
/* Room for n payload frames; false when memory is short. */
bool reply_reserve(struct reply *r, uint32_t n);
/* Reference `block` as the next payload frame; NULL: an empty frame. */
void reply_add_block(struct reply *r, struct dt_block *block);
void outbox_add_reply(struct outbox *out, struct reply *r); /* takes it */

/* A reply without fields. `text` may be NULL. */
void reply_status(struct outbox *out, const struct reply_to *to, enum dt_status status,
                  const char *text, uint64_t step);
void reply_reject(struct outbox *out, const struct reply_to *to, enum dt_status status,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void reply_step(struct outbox *out, const struct reply_to *to, uint64_t job_step, uint64_t step);
/* PARKED or HEARTBEAT's answer. */
void reply_waiting(struct outbox *out, const struct reply_to *to, enum dt_status status,
                   uint64_t job_step, const struct dt_waiting *w);
/* A reply without fields and with a body (taken over). */
void reply_body(struct outbox *out, const struct reply_to *to, struct dt_buffer *body,
                uint64_t step);

#endif
