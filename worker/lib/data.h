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
    uint64_t clock; /* ssp: after this push */
    uint32_t count;
};

/* Checks of a call, DTW_INVALID; declarations do not change after dtw_init, so no lock is needed but by the
 * first: was dtw_init called? Is there a buffer for each variable? */
enum dtw_status data_check_initialised(struct dtw_client *client, struct dtw_error *err);
enum dtw_status data_check_buffers(const struct dtw_client *client, const void *const *buffers,
                                   const char *what, struct dtw_error *err);
enum dtw_status data_check_values(const struct dtw_client *client, float *const *values,
                                  struct dtw_error *err);
/* The push's id and step. Lock held. */
enum dtw_status data_number_push(struct dtw_client *client, struct data_request *r,
                                 struct dtw_error *err);
/* Gradients and values are those of the application's variables, one buffer each; psd may know one as several
 * parts (declare.h).
 * A handle with the messages of all variables, not submitted. NULL: short of memory. Lock held. */
struct dtw_handle *data_request(struct dtw_client *client, const struct data_request *r);
/* One variable more into a handle of dtw_step_begin, with the last one the clock; to be sent with
 * handle_add_sent. False: short of memory. Lock held. */
bool data_add_variable(struct dtw_handle *h, uint32_t index, const float *gradient);
/* INIT of one variable, as psd knows it, out of the values of the whole one. */
struct dtw_handle *data_init_request(struct dtw_client *client, uint32_t index,
                                     const float *values);

#endif
