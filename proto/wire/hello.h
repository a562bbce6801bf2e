/*
 * hello.h - HELLO opens or attaches to a job and binds a session to this connection.
 *
 * request fields: [uuid bin16, rank, task, job, fresh, incarnation, life, endpoint, host, pid, features]
 *                 + one body frame: job parameters (params.h)
 * reply fields:   [incarnation, life, shard, n_shards, peers, job id, must_join, first_step,
 *                  initialised, window, window_bytes, lease_ms, features]
 *
 * How the client learns what happened: it compares incarnation and life with those it had.
 * Both equal: resumed (resend what is outstanding on this connection, in order). Another life: new
 * life (outstanding handles end LOST, nothing is resent; HELLO to the other shards; JOIN if
 * must_join). Another incarnation: psd restarted.
 */
#ifndef DT_WIRE_HELLO_H
#define DT_WIRE_HELLO_H

#include "proto/wire/envelope.h"

struct dt_hello {
    unsigned char uuid[DT_UUID_BYTES]; /* the process */
    uint32_t rank; /* DT_NO_RANK: a reader (only PULL and DECLARE of what exists) */
    uint32_t task; /* index of this psd in the job's list */
    char job[DT_MAX_NAME + 1];
    bool fresh;           /* replace a job that is complete, failed or suspended */
    uint64_t incarnation; /* known psd life, 0 = first contact */
    uint64_t
        life; /* known life of this worker, 0 = none; to shards > 0 it must be the current one */
    char
        endpoint[DT_MAX_ENDPOINT + 1]; /* as the user typed it; tells psd which listener was used */
    char host[65];                     /* for messages to humans */
    uint64_t pid;
    uint32_t n_features;
    char features[DT_MAX_FEATURES][24];
};

struct dt_hello_reply {
    uint64_t incarnation;
    uint64_t life; /* epoch of this worker's registration, >= 1; 0 for a reader */
    uint32_t shard;
    uint32_t n_shards;
    /* How to reach shard i: for tcp the port ("49123"), for ipc the suffix to add to the path (".1");
     * of the same transport as `endpoint`. Element 0 is shard 0 itself. */
    char peers[DT_MAX_SHARDS][24];
    uint64_t job_id;
    bool must_join;      /* the rank is no member: JOIN before the first push */
    uint64_t first_step; /* first step that counts this rank (0 for the expected ranks) */
    bool initialised;
    uint32_t window;       /* requests in flight on this connection */
    uint64_t window_bytes; /* payload bytes in flight, each direction */
    int64_t lease_ms;
    uint32_t n_features;
    char features[DT_MAX_FEATURES][24];
};

void dt_hello_encode(struct dt_buffer *b, uint64_t request, const struct dt_hello *m);
enum dt_status dt_hello_decode(struct dt_head *head, struct dt_hello *m);
/* `status` DT_OK; rejects are sent with dt_head_reply and no fields. */
void dt_hello_reply_encode(struct dt_buffer *b, uint64_t request, uint64_t session, uint64_t step,
                           const struct dt_hello_reply *m);
enum dt_status dt_hello_reply_decode(struct dt_head *head, struct dt_hello_reply *m);

#endif
