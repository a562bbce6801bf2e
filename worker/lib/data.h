/*
 * data.h - requests that carry values: split by home shard into messages. Private.
 */
#ifndef WORKER_LIB_DATA_H
#define WORKER_LIB_DATA_H

#include "worker/lib/handle.h"

struct data_request {
    enum dt_op op;
    const float *const *gradients; /* NULL: abstain, or nothing is pushed */
    float *const *values;          /* NULL: nothing is pulled */
    uint64_t want;                 /* PULL */
    uint64_t counter, weight;
    uint32_t count;
};

/* No NaN, no Inf? */
bool data_is_finite(const float *values, uint64_t n);
/* A handle with the messages of all variables, not submitted. NULL: short of memory. Lock held. */
struct dtw_handle *data_request(struct dtw_client *client, const struct data_request *r);
/* INIT of one variable. */
struct dtw_handle *data_init_request(struct dtw_client *client, uint32_t index,
                                     const float *values);

#endif
