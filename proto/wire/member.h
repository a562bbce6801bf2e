/*
 * member.h - JOIN, LEAVE, HEARTBEAT, INIT_DONE, CLOCK, WAIT_STEP: small control messages.
 *
 * JOIN       request [first step wanted, 0 = psd chooses]  reply [first step]
 * LEAVE      request [last step pushed or DT_NO_VERSION]   reply []
 * HEARTBEAT  request []                                    reply [reason, step, ranks waited for]
 * INIT_DONE  request [sent, n_variables, fingerprint]      reply [state]
 * CLOCK      request [worker's finished steps, clock]      reply [stop step, 2^64-1: none]
 *            clock (ssp, default 0: not told): the worker's clock where it goes on without a push
 * WAIT_STEP  request [global step]                         reply [global step]
 * PARKED (status 1, any op)                                reply [reason, step, ranks waited for]
 */
#ifndef DT_WIRE_MEMBER_H
#define DT_WIRE_MEMBER_H

#include "proto/wire/envelope.h"

struct dt_step_msg { /* JOIN, LEAVE, CLOCK, WAIT_STEP requests; JOIN reply */
    uint64_t step;
    uint64_t clock; /* CLOCK */
};

enum dt_wait_reason {
    DT_WAIT_NOTHING = 0,
    DT_WAIT_INIT = 1,
    DT_WAIT_STEP = 2,
    DT_WAIT_GLOBAL_STEP = 3,
    DT_WAIT_CLOCK = 4, /* ssp: `step` is the clock that the ranks have not reached */
};

struct dt_waiting {  /* PARKED and HEARTBEAT replies: what the oldest parked request waits for */
    uint32_t reason; /* enum dt_wait_reason */
    uint64_t step;   /* the step whose round is open */
    uint32_t n_ranks;
    uint32_t ranks[DT_MAX_WAITED_RANKS];
};

enum dt_init_state { DT_INIT_COMPLETE = 1, DT_INIT_GRANTED = 2 };

struct dt_init_done {
    bool sent; /* false: may I initialise, or is it done? true: all my INITs are acknowledged */
    uint32_t n_variables; /* declared in the whole job */
    uint64_t fingerprint; /* of all declarations with their tasks (declare.h) */
};

void dt_step_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                    uint64_t step);
void dt_clock_encode(struct dt_buffer *b, uint64_t request, uint64_t session, uint64_t step,
                     uint64_t clock);
enum dt_status dt_step_decode(struct dt_head *head, struct dt_step_msg *m); /* missing: step 0 */
void dt_step_reply_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                          uint64_t job_step, uint64_t step);

void dt_heartbeat_encode(struct dt_buffer *b, uint64_t request, uint64_t session);
void dt_waiting_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                       enum dt_status status, uint64_t job_step, const struct dt_waiting *m);
enum dt_status dt_waiting_decode(struct dt_head *head, struct dt_waiting *m);

void dt_init_done_encode(struct dt_buffer *b, uint64_t request, uint64_t session,
                         const struct dt_init_done *m);
enum dt_status dt_init_done_decode(struct dt_head *head, struct dt_init_done *m);
/* The reply's one field is dt_step_reply_encode's `step` with DT_OP_INIT_DONE: enum dt_init_state. */

#endif
