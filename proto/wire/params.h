/*
 * params.h - job parameters. They travel in HELLO's body frame as a map of name -> value; the first
 * worker opens the job with them, all others must bring equal ones. Unknown keys are ignored,
 * missing keys take the default; so parameters can be added.
 */
#ifndef DT_WIRE_PARAMS_H
#define DT_WIRE_PARAMS_H

#include "proto/base/error.h"
#include "proto/wire/envelope.h"

enum dt_consistency { DT_SYNC = 0, DT_ASYNC = 1, DT_SSP = 2 };
enum dt_reduce { DT_REDUCE_MEAN = 0, DT_REDUCE_COUNT = 1, DT_REDUCE_SUM = 2 };
enum dt_locking { DT_LOCK_SLICE = 0, DT_LOCK_NONE = 1, DT_LOCK_VARIABLE = 2 };
#define DT_KERNEL_BYTES 24 /* a word, with its NUL */

enum dt_on_loss { DT_ON_LOSS_SHRINK = 0, DT_ON_LOSS_FAIL = 1 };

struct dt_job_params {
    uint32_t workers;     /* "workers": M, 1..DT_MAX_RANKS; required */
    uint32_t tasks;       /* "tasks": P, default 1 */
    uint32_t consistency; /* "consistency": "sync" (default) | "async" | "ssp" */
    uint32_t locking;   /* "locking": "slice" (default) | "none" | "variable"; asynchronous jobs */
    uint32_t aggregate; /* "aggregate": N, 0 = all members (default) */
    uint32_t reduce;    /* "reduce": "mean" (default) | "count" | "sum" */
    uint32_t on_loss;   /* "on_loss": "shrink" (default) | "fail" */
    int64_t lease_ms;   /* "lease_ms": 100..3 600 000, default 10 000 */
    int64_t start_timeout_ms; /* "start_timeout_ms": 0 = wait for ever (default) */
    int64_t round_timeout_ms; /* "round_timeout_ms": 0 = off (default) */
    uint32_t
        max_bad; /* "max_bad": refused pushes in a row before a worker is told to stop; 0 = never; default 10 */
    int64_t
        max_staleness; /* "max_staleness": updates between pull and push, asynchronous jobs; -1 = any (default) */
    int64_t staleness_bound; /* "staleness_bound": s of ssp, 0 (default) or more; else 0 */
    uint32_t deterministic;  /* "deterministic": "no" (default) | "yes": sums in rank order */
    char
        kernel[DT_KERNEL_BYTES]; /* "kernel": what computes the gradients; "" (default): not told */
};

void dt_job_params_default(struct dt_job_params *p); /* workers = 1 */
void dt_job_params_encode(struct dt_buffer *body, const struct dt_job_params *p);
/* DT_R_MALFORMED or DT_R_BAD_VALUE with a sentence that names the key and both limits. */
enum dt_status dt_job_params_decode(struct dt_job_params *p, const void *body, size_t bytes,
                                    struct dt_error *err);
/* Are they equal? If not, DT_R_MISMATCH with "aggregate: the job has 2, this worker says 3". */
enum dt_status dt_job_params_compare(const struct dt_job_params *job,
                                     const struct dt_job_params *mine, struct dt_error *err);

#endif
