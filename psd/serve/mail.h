/*
 * mail.h - what shards tell each other. Shard 0 posts a change to all shards, every shard applies it
 * to its replica and sends the same mail back as an acknowledgement.
 *
 * Mails between two shards arrive in the order they were posted (the daemon's mailbox keeps it).
 */
#ifndef PSD_SERVE_MAIL_H
#define PSD_SERVE_MAIL_H

#include "proto/wire/params.h"
#include "psd/serve/serve.h"
#include "psd/store/job.h"

enum mail_type {
    MAIL_OPEN,        /* a job: name, params, shared */
    MAIL_CLOSE,       /* let the job go */
    MAIL_ATTACH,      /* rank, life, uuid: sessions of older lives end */
    MAIL_JOIN,        /* rank counts from `step`; answers the highest version seen */
    MAIL_LEAVE,       /* rank's last step is `step` */
    MAIL_STRIKE,      /* rank is lost */
    MAIL_TURN_AWAY,   /* rank declares other variables: no push of its life counts */
    MAIL_DECLARE,     /* shared->declared is set */
    MAIL_GRANT,       /* rank, life may send INIT; slices lose the values of an earlier one */
    MAIL_INITIALISED, /* initial values count */
    MAIL_STATE,       /* job state and text */
    MAIL_CLOCK,       /* ssp: rank's clock is at least `step`; DT_NO_RANK: the bound has changed */
    MAIL_BARRIER,     /* nothing: all earlier mails are applied */
    MAIL_STATUS,      /* answers body: msgpack objects of parked requests, n_body of them */
    MAIL_STAGES,      /* of no job; answers body: one msgpack object, where the shard's time went */
    MAIL_HOLD,        /* rounds from `step` on stay open; answers the highest version seen */
    MAIL_SET,         /* the operator's change, and rounds go on */
    MAIL_ROUND_LATE,  /* shard k to 0: rank hangs at `step` (round-timeout) */
    MAIL_NONFINITE,   /* shard k to 0: a variable has got NaN or Inf */
    N_MAIL_TYPES
};

struct control_set {                /* a change of a setting by the operator; set.c */
    char key[24];                   /* "lr", "max_staleness", "staleness_bound" */
    char variable[DT_MAX_NAME + 1]; /* lr: "" is for all */
    double value;
    uint64_t from; /* the step from which on it counts */
};

struct nonfinite_report { /* of a variable: the first that was found */
    char variable[DT_MAX_NAME + 1];
    char slot[24];  /* "": in its values */
    uint32_t rank;  /* whose gradient was the largest of those before it was found */
    double largest; /* its largest magnitude */
    uint64_t step;  /* when it was found */
};

struct mail {
    struct mail *next;
    uint32_t to;
    uint32_t from;
    enum mail_type type;
    bool ack;
    uint64_t seq; /* of the pending operation on shard 0; 0: no acknowledgement wanted */
    uint64_t job_id;
    uint32_t rank;
    uint64_t life;
    uint64_t step;
    unsigned char uuid[DT_UUID_BYTES];
    char text[DT_MAX_TEXT + 1]; /* OPEN: the job's name */
    struct dt_job_params params;
    struct job_shared *shared; /* borrowed */
    enum job_state state;
    struct control_set set;
    struct nonfinite_report nonfinite;
    enum dt_status status; /* ack */
    uint32_t n_body;
    struct dt_buffer body; /* owned */
};

struct mail *mail_create(enum mail_type type, uint64_t job_id); /* NULL when memory is short */
void outbox_add_mail(struct outbox *out, struct mail *mail);    /* takes it */

/* Apply a change to this shard's replica; fills the acknowledgement's fields. apply.c */
void mail_apply(struct shard *shard, struct mail *mail, int64_t now, struct outbox *out);

#endif
