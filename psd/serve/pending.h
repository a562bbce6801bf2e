/*
 * pending.h - operations of shard 0 that end when every shard has acknowledged.
 */
#ifndef PSD_SERVE_PENDING_H
#define PSD_SERVE_PENDING_H

#include "psd/serve/shard.h"

struct pending;
typedef void pending_fn(struct shard *shard, struct pending *p, int64_t now, struct outbox *out);

struct pending {
    struct pending *next;
    uint64_t seq;
    uint32_t n_left;       /* acknowledgements */
    enum dt_status status; /* the first that was not OK */
    uint64_t step;         /* largest of the acknowledgements */
    pending_fn *done;      /* called once; the entry is freed afterwards */
    /* for done() */
    struct reply_to to;
    uint64_t job_id;
    uint32_t rank;
    uint64_t life;
    uint64_t value;
    void *arg;               /* owned; freed with the entry */
    uint32_t n_body;         /* MAIL_STATUS, MAIL_STAGES: collected objects */
    struct dt_buffer body;   /* owned */
    uint32_t n_so_far;       /* ADMIN_STATUS: jobs told so far */
    struct dt_buffer so_far; /* owned */
};

/* A new entry for the answer to `to` (may be NULL); NULL when memory is short. */
struct pending *pending_create(pending_fn *done, const struct reply_to *to, uint64_t job_id);

/* Apply `m` here and post copies to the other shards. With `p` (taken), p->done runs when all have
 * acknowledged: at once when there is one shard. `m` is taken. */
void post_all(struct shard *shard, struct mail *m, struct pending *p, int64_t now,
              struct outbox *out);

/* An acknowledgement came in. */
void pending_acknowledge(struct shard *shard, struct mail *ack, int64_t now, struct outbox *out);
void pending_destroy_all(struct shard *shard);

#endif
