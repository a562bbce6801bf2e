/*
 * replay_store.h - private to replay*.c: what psd held while a job was recorded, in this process: the slices of psd
 * itself (psd/store), so that a push is applied by the same code. One thread at a time.
 */
#ifndef TRAIN_REPLAY_STORE_H
#define TRAIN_REPLAY_STORE_H

#include "psd/store/job.h"
#include "worker/train/model.h"
#include "worker/train/record.h"

struct replay_store { /* zero-initialise */
    uint32_t n_variables;
    char names[MODEL_MAX_VARIABLES][DT_MAX_NAME + 1];
    uint64_t elements[MODEL_MAX_VARIABLES];
    struct dt_declaration declared[MODEL_MAX_VARIABLES]; /* as the loop declared them */
    const struct record_slice *slices;                   /* borrowed */
    uint64_t n_slices;
    struct dt_pool *pool;      /* owned */
    struct job_shared *shared; /* owned */
    struct job *job;           /* owned; every slice is a variable of it */
};

/* DTW_INVALID with a sentence. */
enum dtw_status replay_store_declare(struct replay_store *s, const struct dtw_variable *v,
                                     struct dtw_error *err);
/* After the declarations: slices with the initial values. */
enum dtw_status replay_store_init(struct replay_store *s, const struct record_slice *slices,
                                  uint64_t n_slices, dtw_init_fn *fill, void *arg,
                                  struct dtw_error *err);
void replay_store_deinit(struct replay_store *s);

static inline struct slice *
replay_store_slice(const struct replay_store *s, uint64_t i)
{
    return job_find_slice(s->job, (uint32_t)i, 0);
}

/* "dense/kernel[0..1000)" of slice i: one static buffer a thread. */
const char *replay_store_name(const struct replay_store *s, uint64_t i);

#endif
