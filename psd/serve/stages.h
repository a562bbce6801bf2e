/*
 * stages.h - where a shard's time goes: waiting, receiving, decoding, applying, replying.
 *
 * The daemon gives the clock and says what a turn does (stages_turn, stages_message); handlers say which stage
 * of their message begins (stages_enter). The time of a turn's parts is exact. How the time of messages is
 * divided over their stages is known from a random sample of them: five readings of the clock make 140 to 160 ns
 * a push of 64 bytes (measured with a vDSO clock), of which psd takes some microseconds; one in 16 makes 25 ns.
 * Without a clock no time is counted or paid.
 *
 * Thread rule: the shard's thread alone.
 */
#ifndef PSD_SERVE_STAGES_H
#define PSD_SERVE_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/buffer.h"

enum stage {
    STAGE_IDLE,    /* waits in poll */
    STAGE_OTHER,   /* mails, ticks, control requests */
    STAGE_RECEIVE, /* takes a message from libzmq, gives its frames back */
    STAGE_DECODE,  /* header, session, checks of the payload */
    STAGE_APPLY,   /* takes gradients in, closes rounds */
    STAGE_REPLY,   /* builds and sends, also to who was parked */
    N_STAGES
};

typedef uint64_t stage_clock_fn(void); /* monotonic nanoseconds */

#define STAGES_SAMPLE 16 /* the daemon's: one message in so many is divided, on average */

struct stage_totals {             /* they only grow */
    uint64_t turn_ns[N_STAGES];   /* STAGE_RECEIVE: all the time with messages */
    uint64_t sample_ns[N_STAGES]; /* of the messages that were divided */
    uint64_t n_received, received_bytes;
    uint64_t n_sent, sent_bytes; /* taken by libzmq */
    uint64_t n_parked;           /* requests that were parked and got their values */
    uint64_t parked_ns;          /* their waits together */
};

struct stages {
    stage_clock_fn *clock; /* NULL: no time is counted */
    uint32_t sample;
    uint32_t random;
    uint32_t left; /* messages until one is divided */
    bool divided;  /* the present message is */
    enum stage turn, stage;
    uint64_t turn_since_ns, stage_since_ns;
    struct stage_totals totals;
    struct stage_totals past[2]; /* totals of STAGES_RECENT_NS ago or more, and of less; by tick */
};
#define STAGES_RECENT_NS 10000000000ull

/* `clock` may be NULL. One message in `sample` is divided, 1: each. */
void stages_init(struct stages *stages, stage_clock_fn *clock, uint32_t sample);

/* What the turn does from here on: STAGE_IDLE, STAGE_RECEIVE (all about messages) or STAGE_OTHER. Returns the time,
 * 0 without a clock. */
uint64_t stages_turn(struct stages *stages, enum stage part);
/* The message before ends, the next one is received; in STAGE_RECEIVE of the turn. */
void stages_message(struct stages *stages);

void stages_divide(struct stages *stages, enum stage stage);
/* The message's next stage. No effect outside of messages, and in those that are not divided. */
static inline void
stages_enter(struct stages *s, enum stage stage)
{
    if (s->divided && s->stage != stage)
        stages_divide(s, stage);
}

static inline void
stages_received(struct stages *s, uint64_t bytes)
{
    s->totals.n_received++;
    s->totals.received_bytes += bytes;
}

static inline void
stages_sent(struct stages *s, uint64_t bytes)
{
    s->totals.n_sent++;
    s->totals.sent_bytes += bytes;
}

/* A request is parked: the time, to be given to stages_woken when it is answered. */
uint64_t stages_parked(const struct stages *stages);
void stages_woken(struct stages *stages, uint64_t parked_ns);

void stages_tick(struct stages *stages);

/* The nanoseconds of each stage; together the time from stages_init (or between two totals) to the last
 * stages_turn. */
void stages_spread(const struct stage_totals *totals, double ns[N_STAGES]);
/* What was counted since the tick of at least STAGES_RECENT_NS ago, or since the start. */
void stages_recent(const struct stages *stages, struct stage_totals *recent);

/* Appends the shard's map of ADMIN_STATUS; psd-protocol(7). */
void stages_write(const struct stages *stages, uint32_t shard, struct dt_buffer *body);

#endif
