/*
 * op.h - operation numbers. A reply carries the request's op with DT_REPLY_BIT set.
 */
#ifndef DT_WIRE_OP_H
#define DT_WIRE_OP_H

enum dt_op {
    DT_OP_HELLO = 1,
    DT_OP_JOIN = 2,
    DT_OP_LEAVE = 3,
    DT_OP_HEARTBEAT = 4,
    DT_OP_DECLARE = 5,
    DT_OP_INIT = 6,
    DT_OP_INIT_DONE = 7,
    DT_OP_CLOCK = 8,
    DT_OP_WAIT_STEP = 9,
    DT_OP_SET = 10,
    DT_OP_STATS = 11,
    DT_OP_CHECKPOINT = 12,
    DT_OP_RESTORE = 13,
    DT_OP_GOODBYE = 14, /* from psd: 14 | DT_REPLY_BIT with request id 0; acknowledged by op 14 */

    DT_OP_PUSH = 16,
    DT_OP_PULL = 17,
    DT_OP_PUSHPULL = 18,

    DT_OP_ADMIN_STATUS = 32,
    DT_OP_ADMIN_KICK = 33,
    DT_OP_ADMIN_SHUTDOWN = 34,
    DT_OP_ADMIN_PLACEMENT = 35,
    DT_OP_ADMIN_SET = 36,
};

#define DT_REPLY_BIT 128

const char *dt_op_name(unsigned op); /* "HELLO", ...; "?" if unknown */

#endif
