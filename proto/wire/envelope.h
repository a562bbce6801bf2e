/*
 * envelope.h - the first elements of every header frame.
 *
 * request: [version, op, request id, session, ...op fields]
 * reply:   [version, op|128, request id, session, status, text, step, ...op fields]
 *
 * Readers ignore extra trailing fields; missing ones take their default. That is done by the field
 * readers below: they read a field only while `n_left` > 0.
 */
#ifndef DT_WIRE_ENVELOPE_H
#define DT_WIRE_ENVELOPE_H

#include "proto/base/buffer.h"
#include "proto/base/status.h"
#include "proto/wire/limits.h"
#include "proto/wire/op.h"
#include "proto/wire/reader.h"
#include "proto/wire/writer.h"

struct dt_head {
    uint32_t version;
    uint32_t op; /* with DT_REPLY_BIT in replies */
    uint64_t request;
    uint64_t session; /* 0: none */
    /* replies only */
    enum dt_status status;
    char text[DT_MAX_TEXT + 1]; /* a sentence; "" when ok */
    uint64_t step;              /* the job's global step as this shard knows it */
    /* reading */
    struct dt_reader fields; /* stands at the first op field */
    uint32_t n_left;         /* fields not read yet */
};

/* Decode the common part; for replies (op has DT_REPLY_BIT) the status, text and step as well.
 * DT_R_MALFORMED when it is no such array; DT_R_VERSION when only the version differs (op, request
 * and session are then filled where they could be read). A header above DT_MAX_HEADER_BYTES is malformed. */
enum dt_status dt_head_decode(struct dt_head *head, const void *data, size_t bytes);

/* Is there another op field? Counts it as read. Use: if (dt_head_next(h)) x = dt_read_u64(&h->fields); */
bool dt_head_next(struct dt_head *head);
/* The same as shorthands with defaults. */
uint64_t dt_head_u64(struct dt_head *head, uint64_t max, uint64_t def);
bool dt_head_bool(struct dt_head *head, bool def);

/* Start a header with `n_fields` op fields to follow; the caller then writes exactly that many. */
void dt_head_request(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                     uint32_t n_fields);
void dt_head_reply(struct dt_buffer *b, unsigned op, uint64_t request, uint64_t session,
                   enum dt_status status, const char *text, uint64_t step, uint32_t n_fields);

#endif
