/*
 * link.h - the way between a loop and the variables of its job: a client of psd, one whose pulls and pushes are
 * recorded (recorder.h), or a store that replays a record (replay.h).
 *
 * The loops talk to psd through a link alone, so that all of them can be recorded and replayed. The calls are those
 * of libdtworker that wait: a status other than DTW_OK has its line in `err`. One thread.
 */
#ifndef TRAIN_LINK_H
#define TRAIN_LINK_H

#include "worker/lib/dtworker.h"

struct link_ops {
    enum dtw_status (*declare)(void *self, const struct dtw_variable *v, struct dtw_error *err);
    enum dtw_status (*init)(void *self, dtw_init_fn *fill, void *arg, uint64_t *first_step,
                            struct dtw_error *err);
    enum dtw_status (*join)(void *self, uint64_t *first_step, struct dtw_error *err);
    enum dtw_status (*pull)(void *self, float *const *values, uint64_t want, struct dtw_result *r,
                            struct dtw_error *err);
    enum dtw_status (*push)(void *self, const float *const *gradients, uint64_t weight,
                            unsigned count, struct dtw_result *r, struct dtw_error *err);
    /* Push and pull. */
    enum dtw_status (*step)(void *self, const float *const *gradients, float *const *values,
                            uint64_t weight, unsigned count, struct dtw_result *r,
                            struct dtw_error *err);
    /* The end of a dtw_step_begin with these buffers: frees the handle. */
    enum dtw_status (*finish)(void *self, struct dtw_handle *h, const float *const *gradients,
                              float *const *values, struct dtw_result *r, struct dtw_error *err);
    enum dtw_status (*wait_step)(void *self, uint64_t step, struct dtw_error *err);
    void (*stop_all)(void *self);   /* all workers of an asynchronous job, at the global step now */
    bool (*is_stopped)(void *self); /* the job's stop step has come */
    uint64_t (*worker_step)(void *self); /* largest version of the last pull */
};

struct link {
    const struct link_ops *ops;
    void *self; /* borrowed; a client, a recorder or a rank of a replay */
};

struct link link_of_client(struct dtw_client *client);

#endif
