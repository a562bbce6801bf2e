/*
 * parked.h - PULL and PUSHPULL requests that wait for versions of slices.
 *
 * A request is one entry with one link a slice; links hang on slice->waiters. The entry is answered
 * when its last slice is there. Entries of a session are bounded: the slices of the job that live
 * here, and max_session_bytes.
 */
#ifndef PSD_SERVE_PARKED_H
#define PSD_SERVE_PARKED_H

#include "proto/wire/data.h"
#include "psd/serve/session.h"

struct parked_item {
    struct parked *owner; /* borrowed */
    struct slice *slice;  /* borrowed */
    uint64_t have;
    uint64_t want;
    bool waiting;
    struct parked_item *prev, *next; /* in slice->waiters */
    struct dt_data_result result;    /* the push's fate */
};

struct parked {
    struct session *session; /* borrowed */
    unsigned op;
    uint64_t request;
    uint64_t since_ns; /* of stages_parked */
    uint32_t n_items;
    uint32_t n_waiting;
    struct parked *prev, *next; /* in session->parked */
    struct parked_item items[];
};

/* Make an entry for the items of `data` and hang it on what is not there yet. `results` are the fates
 * of a PUSHPULL or NULL. The session's bounds are checked: NULL and *status DT_R_QUOTA (or DT_R_GOING_DOWN
 * never; DT_R_QUOTA also when memory is short). n_waiting may be 0: answer at once with parked_answer. */
struct parked *parked_create(struct shard *shard, struct session *session, unsigned op,
                             uint64_t request, const struct dt_data *data,
                             const struct dt_data_result *results);
/* Send the values and free the entry. */
void parked_answer(struct shard *shard, struct parked *parked, bool woken, struct outbox *out);
void parked_destroy(struct parked *parked);
/* Answer with a status and free. */
void parked_refuse(struct parked *parked, enum dt_status status, const char *text,
                   struct outbox *out);
/* The slice's version or the job's state has changed. */
void parked_wake(struct shard *shard, struct slice *slice, const struct job *job,
                 struct outbox *out);
/* What the entry waits for, for PARKED and HEARTBEAT. */
void parked_waiting(const struct parked *parked, struct dt_waiting *w);
const struct parked_item *parked_first_waiting(const struct parked *parked);
/* May `rank` have the values of a slice, whose initial ones are there? `want`: a version, in ssp a clock. */
bool parked_is_there(const struct slice *slice, const struct job *job, uint32_t rank,
                     uint64_t want);
/* Would these bounds allow it? */
bool parked_fits(const struct shard *shard, const struct session *session, uint32_t n_items);

#endif
