/*
 * data.h - INIT, PUSH, PULL, PUSHPULL. Payload frames: raw little-endian float32, one frame an item,
 * in the order of the items; exactly dt_slice_elements() * 4 bytes each.
 *
 * INIT      request [items: [variable, slice]...]                                  + n frames; reply []
 * PUSH      request [counter, weight, count, items: [variable, slice, version]...] + n frames
 *           (none to abstain: weight 0 and count 0);  reply [fates: [fate, version]...]
 * PULL      request [items: [variable, slice, have, want]...]  (have: nil or the version held)
 *           reply [values: [version, modified]...] + n frames (empty where not modified)
 * PUSHPULL  request [counter, weight, count, items: [variable, slice, version, want]...] + n frames or none
 *           reply [fates: [fate, version]..., values: [version, modified]...] + n frames
 *
 * PUSH and PUSHPULL may have one more field: clock, the steps that the worker has finished with this push (ssp).
 * In ssp `want` is the puller's clock instead of a version: park until every other active worker has finished
 * want - staleness_bound steps at that slice.
 *
 * Replies of a job with locking none have one more field: approximate, true.
 *
 * One push has one counter for all its messages; counters of a worker rise. weight = rows,
 * count = batches. version = the one that the gradient was computed at. want: park until the slice's
 * version >= want.
 */
#ifndef DT_WIRE_DATA_H
#define DT_WIRE_DATA_H

#include "proto/wire/envelope.h"

enum dt_fate {
    DT_FATE_NONE = 0,
    DT_FATE_APPLIED = 1,
    DT_FATE_ACCUMULATED = 2,
    DT_FATE_STALE = 3,     /* dropped: the slice is past that version */
    DT_FATE_DUPLICATE = 4, /* the rank's gradient of that step is already in */
    DT_FATE_AHEAD = 5,     /* the slice has not reached that version */
    DT_FATE_REFUSED = 6,   /* not a member of that step */
};
const char *dt_fate_name(unsigned fate);

struct dt_item {
    uint32_t variable; /* id given by DECLARE */
    uint32_t slice;
    uint64_t version; /* PUSH, PUSHPULL; PULL: have (DT_NO_VERSION = none) */
    uint64_t want;    /* PULL, PUSHPULL */
};

struct dt_data { /* a decoded INIT, PUSH, PULL or PUSHPULL request */
    uint64_t counter;
    uint64_t weight;
    uint64_t clock; /* ssp: finished steps, this push counted; at most DT_MAX_CLOCK; 0: not told */
    uint32_t count;
    uint32_t n_items;
    struct dt_item items[DT_MAX_ITEMS];
};

struct dt_data_result {
    uint8_t fate;          /* PUSH, PUSHPULL */
    uint64_t push_version; /* version of the slice after the push was taken or dropped */
    uint64_t version;      /* PULL, PUSHPULL: of the values */
    bool modified;
};

struct dt_data_reply {
    uint32_t n_items;
    bool approximate; /* locking none: versions and fates' versions may be off by a few */
    struct dt_data_result items[DT_MAX_ITEMS];
};

/* op is DT_OP_INIT, DT_OP_PUSH, DT_OP_PULL or DT_OP_PUSHPULL. */
void dt_data_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                    const struct dt_data *m);
enum dt_status dt_data_decode(struct dt_head *head, struct dt_data *m); /* by head->op */
void dt_data_reply_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                          uint64_t step, const struct dt_data_reply *m);
enum dt_status dt_data_reply_decode(struct dt_head *head,
                                    struct dt_data_reply *m); /* by head->op */

#endif
