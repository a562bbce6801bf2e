/*
 * limits.h - the protocol's numbers (psd-protocol(7), LIMITS).
 */
#ifndef DT_WIRE_LIMITS_H
#define DT_WIRE_LIMITS_H

#include "proto/base/block.h"

#define DT_PROTOCOL_VERSION 1

#define DT_MAX_HEADER_BYTES 4096
#define DT_MAX_BODY_BYTES (1u << 20)
#define DT_MAX_FRAME_BYTES DT_SLICE_BYTES /* a payload frame: one slice */
#define DT_MAX_ITEMS 64                   /* slices (payload frames) a message */
#define DT_MAX_WEIGHT (1ull << 48)        /* rows in one push */
#define DT_MAX_CLOCK (INT64_C(1) << 48)   /* ssp: a clock; this one holds nobody back */
#define DT_MAX_NAME 128                   /* job and variable names, bytes without NUL */
#define DT_MAX_TEXT 512                   /* sentences in replies */
#define DT_MAX_ENDPOINT 255
#define DT_MAX_DIMS 8
#define DT_MAX_VARIABLES 4096 /* of one job */
#define DT_MAX_SHARDS 64
#define DT_MAX_RANKS 1024
#define DT_MAX_TASKS 256
#define DT_MAX_FEATURES 16
#define DT_MAX_OPTIMIZER_PARAMS 24
#define DT_MAX_WAITED_RANKS 32 /* ranks named in PARKED and HEARTBEAT replies */
#define DT_UUID_BYTES 16
#define DT_NO_VERSION UINT64_MAX /* "none" where a version is optional */
#define DT_NO_RANK UINT32_MAX    /* a reader: no rank, only PULL */

#endif
