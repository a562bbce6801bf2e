/*
 * psctl_ask.h - psctl's connection to the admin socket of a psd.
 *
 * Thread rule: one thread.
 */
#ifndef WORKER_CLI_PSCTL_ASK_H
#define WORKER_CLI_PSCTL_ASK_H

#include "proto/base/buffer.h"
#include "proto/base/error.h"
#include "proto/net/dealer.h"
#include "proto/wire/placement.h"
#include "proto/wire/set.h"
#include "proto/wire/stats.h"

struct psctl {
    char endpoint[DT_MAX_ENDPOINT + 1];
    struct dt_context *context; /* owned */
    struct dt_dealer *dealer;   /* owned */
    uint64_t next_request;
    uint64_t answer; /* first field of the last answer, where it is a number */
};

/* `endpoint` NULL: the only *.sock in the admin directories on which somebody listens; none is DT_E_UNAVAILABLE, several are
 * DT_E_USAGE with their names. psctl_close is to be called also after a failure. */
enum dt_status psctl_open(struct psctl *c, const char *endpoint, struct dt_error *err);
void psctl_close(struct psctl *c);

/* Send one request and wait for its reply, at most 3 s. A reject comes back as that status with psd's
 * sentence in `err`. `body` (may be NULL) receives the body frame. DT_E_UNAVAILABLE, DT_E_PROTOCOL. */
enum dt_status psctl_ask_status(struct psctl *c, struct dt_buffer *body, struct dt_error *err);
enum dt_status psctl_ask_kick(struct psctl *c, const char *job, uint32_t rank,
                              struct dt_error *err);
/* *from: the step from which on it counts. */
enum dt_status psctl_ask_set(struct psctl *c, const struct dt_admin_set *m, uint64_t *from,
                             struct dt_error *err);
enum dt_status psctl_ask_placement(struct psctl *c, const struct dt_placement *m,
                                   struct dt_buffer *body, struct dt_error *err);
enum dt_status psctl_ask_shutdown(struct psctl *c, struct dt_error *err);

#endif
