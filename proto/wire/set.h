/*
 * set.h - SET and ADMIN_SET change a live job's setting.
 *
 * SET  request [key, value]  reply [value in force]
 * keys, of a worker: "stop_step": the global step at which workers stop; the least one that was set counts.
 *
 * ADMIN_SET  request [job, key, value float64, variable, step]  reply [step from which on it counts]
 * keys, of the operator: "lr" of one variable or of all (""), "max_staleness" of an asynchronous job, "staleness_bound"
 * of an ssp job. step nil or
 * missing: as soon as can be.
 */
#ifndef DT_WIRE_SET_H
#define DT_WIRE_SET_H

#include "proto/wire/envelope.h"

struct dt_set {
    char key[24];
    uint64_t value;
};

void dt_set_encode(struct dt_buffer *b, uint64_t request, uint64_t session, const struct dt_set *m);
enum dt_status dt_set_decode(struct dt_head *head, struct dt_set *m);
/* The reply's one field is dt_step_reply_encode's `step` with DT_OP_SET, or DT_OP_ADMIN_SET. */

struct dt_admin_set {
    char job[DT_MAX_NAME + 1];
    char key[24];
    double value;                   /* finite */
    char variable[DT_MAX_NAME + 1]; /* "": all */
    uint64_t step;                  /* DT_NO_VERSION: as soon as can be */
};

void dt_admin_set_encode(struct dt_buffer *b, uint64_t request, const struct dt_admin_set *m);
enum dt_status dt_admin_set_decode(struct dt_head *head, struct dt_admin_set *m);

#endif
