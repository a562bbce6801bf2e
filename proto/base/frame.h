/*
 * frame.h - views of received frames and payloads to send, without a word about sockets.
 */
#ifndef DT_BASE_FRAME_H
#define DT_BASE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/block.h"

#define DT_ROUTE_BYTES 32

struct dt_route { /* a peer's routing id on one router */
    uint8_t len;
    unsigned char id[DT_ROUTE_BYTES];
};

struct dt_span {            /* borrowed */
    const unsigned char *p; /* not aligned */
    size_t bytes;
};

struct dt_payload {
    struct dt_block *block; /* shared: a reference is taken for the time of the transfer */
    const void *data;       /* borrowed, copied at the send; used when block is NULL */
    size_t bytes;           /* may be 0: an empty frame */
};

enum dt_sent {
    DT_SENT = 0,
    DT_SENT_FULL = 1, /* EAGAIN: nothing was sent */
    DT_SENT_GONE = 2, /* EHOSTUNREACH: no such peer */
};

#endif
