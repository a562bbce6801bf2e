/*
 * message.h - one request on one connection. Private.
 *
 * The request id is made once and stays through every resend; the header is encoded at each send,
 * because session ids change. Owned by its connection's list from connection_add on.
 */
#ifndef WORKER_LIB_MESSAGE_H
#define WORKER_LIB_MESSAGE_H

#include <stdatomic.h>

#include "proto/wire/data.h"
#include "proto/wire/member.h"
#include "proto/wire/set.h"
#include "worker/lib/connection.h"

struct dtw_handle;

struct message_item {
    uint32_t variable; /* id */
    uint32_t slice;
    uint32_t n;       /* elements */
    uint64_t version; /* PUSH, PUSHPULL; PULL: have */
    uint64_t want;
    const float *out; /* lent by the application; NULL: abstain, or nothing is pushed */
    float *in;        /* lent by the application; NULL: nothing is pulled */
    _Atomic uint64_t *version_held; /* borrowed: told by a pull */
    _Atomic uint64_t *version_made; /* borrowed: told by a push that was applied */
};

struct message {
    struct message *prev, *next;
    struct connection *connection; /* borrowed */
    struct dtw_handle *handle; /* borrowed; NULL: given up, only its place in the window is kept */
    enum dt_op op;
    uint64_t id;
    bool sent;
    bool in_flight; /* holds a place in the window */
    bool parked;
    uint64_t out_bytes, in_bytes; /* payload */
    uint32_t whole;        /* of a step given one by one: its variable; a smaller one goes first */
    struct dt_buffer body; /* owned: control messages */
    uint64_t step;         /* JOIN, LEAVE, CLOCK, WAIT_STEP, SET */
    struct dt_init_done init_done;
    uint64_t counter, weight; /* PUSH, PUSHPULL */
    uint64_t clock;           /* the same, and CLOCK: ssp */
    uint32_t count;
    uint32_t n_items;
    struct message_item items[]; /* room for DT_MAX_ITEMS in data messages */
};

struct message *message_create(struct connection *connection, enum dt_op op, uint32_t max_items);
void message_destroy(struct message *m); /* NULL-safe */
/* Encode with the connection's session and send. DT_SENT or DT_SENT_FULL. Token held. */
enum dt_sent message_send(struct message *m);

#endif
