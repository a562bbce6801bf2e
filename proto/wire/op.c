/*
 * op.c - names of the operations, for texts and logs. Any thread.
 */
#include "proto/wire/op.h"

#include <stddef.h>

static const char *const names[] = {
    [DT_OP_HELLO] = "HELLO",
    [DT_OP_JOIN] = "JOIN",
    [DT_OP_LEAVE] = "LEAVE",
    [DT_OP_HEARTBEAT] = "HEARTBEAT",
    [DT_OP_DECLARE] = "DECLARE",
    [DT_OP_INIT] = "INIT",
    [DT_OP_INIT_DONE] = "INIT_DONE",
    [DT_OP_CLOCK] = "CLOCK",
    [DT_OP_WAIT_STEP] = "WAIT_STEP",
    [DT_OP_SET] = "SET",
    [DT_OP_STATS] = "STATS",
    [DT_OP_CHECKPOINT] = "CHECKPOINT",
    [DT_OP_RESTORE] = "RESTORE",
    [DT_OP_GOODBYE] = "GOODBYE",
    [DT_OP_PUSH] = "PUSH",
    [DT_OP_PULL] = "PULL",
    [DT_OP_PUSHPULL] = "PUSHPULL",
    [DT_OP_ADMIN_STATUS] = "ADMIN_STATUS",
    [DT_OP_ADMIN_KICK] = "ADMIN_KICK",
    [DT_OP_ADMIN_SHUTDOWN] = "ADMIN_SHUTDOWN",
    [DT_OP_ADMIN_PLACEMENT] = "ADMIN_PLACEMENT",
    [DT_OP_ADMIN_SET] = "ADMIN_SET",
};

const char *
dt_op_name(unsigned op)
{
    op &= ~(unsigned)DT_REPLY_BIT;
    if (op >= sizeof(names) / sizeof(names[0]) || names[op] == NULL)
        return "?";
    return names[op];
}
