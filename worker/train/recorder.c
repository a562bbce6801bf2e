/*
 * recorder.c - asks the client after each exchange which versions it pulled and made, and writes them down.
 *
 * Invariant: what cannot be written does not stop the training; recorder_close tells it. Threads: the loop's alone.
 */
#include "worker/train/recorder.h"

#include <stdlib.h>

#include "worker/train/fingerprint.h"
#include "worker/train/model.h"

struct recorder {
    struct record_writer *writer; /* owned */
    struct link to;               /* psd */
    struct dtw_client *client;    /* borrowed */
    uint32_t n_variables;
    uint64_t elements[MODEL_MAX_VARIABLES];
    uint64_t n_slices;
    struct dtw_slice *slices; /* owned */
    enum record_end end;
    bool stopped; /* the job's stop step has come */
};

enum dt_status
recorder_create(const char *dir, uint32_t rank, const char *header, struct recorder **out,
                struct dt_error *err)
{
    struct recorder *r = calloc(1, sizeof(*r));

    *out = NULL;
    if (!r)
        return dt_fail(err, DT_E_NO_MEMORY, "--record: memory is short");
    enum dt_status s = record_create(dir, rank, &r->writer, err);
    if (s != DT_OK) {
        free(r);
        return s;
    }
    record_write_header(r->writer, header);
    *out = r;
    return DT_OK;
}

void
recorder_end(struct recorder *r, const float *const *values)
{
    if (r)
        record_write_end(r->writer, r->end, r->stopped,
                         fingerprint_values(values, r->elements, r->n_variables));
}

enum dt_status
recorder_close(struct recorder *r, struct dt_error *err)
{
    if (!r)
        return DT_OK;
    enum dt_status s = record_close(r->writer, err);
    free(r->slices);
    free(r);
    return s;
}

static enum dtw_status
declare(void *self, const struct dtw_variable *v, struct dtw_error *err)
{
    struct recorder *r = self;
    uint64_t n = 1;

    for (unsigned i = 0; i < v->n_dims; i++)
        n *= v->shape[i];
    enum dtw_status s = r->to.ops->declare(r->to.self, v, err);
    if (s == DTW_OK)
        r->elements[r->n_variables++] = n;
    return s;
}

static enum dtw_status
init(void *self, dtw_init_fn *fill, void *arg, uint64_t *first_step, struct dtw_error *err)
{
    struct recorder *r = self;
    uint64_t first = 0;

    enum dtw_status s = r->to.ops->init(r->to.self, fill, arg, &first, err);
    if (first_step)
        *first_step = first;
    if (s == DTW_OK)
        s = dtw_slices(r->client, NULL, 0, &r->n_slices, err);
    if (s != DTW_OK || r->slices)
        return s;
    r->slices = calloc(r->n_slices, sizeof(*r->slices));
    if (!r->slices)
        return DTW_NO_MEMORY;
    s = dtw_slices(r->client, r->slices, r->n_slices, NULL, err);
    record_write_slices(r->writer, first, r->slices, r->n_slices);
    return s;
}

static enum dtw_status
join(void *self, uint64_t *first_step, struct dtw_error *err)
{
    struct recorder *r = self;

    r->end = RECORD_LOST;
    return r->to.ops->join(r->to.self, first_step, err);
}

/* An exchange ended. */
static enum dtw_status
note(struct recorder *r, enum record_kind kind, enum dtw_status s, const float *const *gradients,
     float *const *values)
{
    if (s != DTW_OK) {
        if (kind != RECORD_PULL && r->end == RECORD_COMPLETE)
            r->end = RECORD_GIVEN_UP;
        return s;
    }
    s = dtw_slices(r->client, r->slices, r->n_slices, NULL, NULL);
    if (s == DTW_OK)
        record_write_exchange(
            r->writer, kind, r->slices, fingerprint_values(gradients, r->elements, r->n_variables),
            fingerprint_values((const float *const *)values, r->elements, r->n_variables));
    return s;
}

static enum dtw_status
pull(void *self, float *const *values, uint64_t want, struct dtw_result *result,
     struct dtw_error *err)
{
    struct recorder *r = self;

    return note(r, RECORD_PULL, r->to.ops->pull(r->to.self, values, want, result, err), NULL,
                values);
}

static enum dtw_status
push(void *self, const float *const *gradients, uint64_t weight, unsigned count,
     struct dtw_result *result, struct dtw_error *err)
{
    struct recorder *r = self;
    enum dtw_status s = r->to.ops->push(r->to.self, gradients, weight, count, result, err);

    return note(r, RECORD_PUSH, s, gradients, NULL);
}

static enum dtw_status
step(void *self, const float *const *gradients, float *const *values, uint64_t weight,
     unsigned count, struct dtw_result *result, struct dtw_error *err)
{
    struct recorder *r = self;
    enum dtw_status s = r->to.ops->step(r->to.self, gradients, values, weight, count, result, err);

    return note(r, RECORD_STEP, s, gradients, values);
}

static enum dtw_status
finish(void *self, struct dtw_handle *h, const float *const *gradients, float *const *values,
       struct dtw_result *result, struct dtw_error *err)
{
    struct recorder *r = self;
    enum dtw_status s = r->to.ops->finish(r->to.self, h, gradients, values, result, err);

    return note(r, RECORD_STEP, s, gradients, values);
}

static enum dtw_status
wait_step(void *self, uint64_t step_wanted, struct dtw_error *err)
{
    struct recorder *r = self;

    return r->to.ops->wait_step(r->to.self, step_wanted, err);
}

static void
stop_all(void *self)
{
    struct recorder *r = self;

    r->to.ops->stop_all(r->to.self);
}

static bool
is_stopped(void *self)
{
    struct recorder *r = self;

    r->stopped = r->to.ops->is_stopped(r->to.self);
    return r->stopped;
}

static uint64_t
worker_step(void *self)
{
    struct recorder *r = self;

    return r->to.ops->worker_step(r->to.self);
}

struct link
recorder_link(struct recorder *r, struct dtw_client *client)
{
    static const struct link_ops ops = {declare, init,      join,     pull,       push,       step,
                                        finish,  wait_step, stop_all, is_stopped, worker_step};

    r->client = client;
    r->to = link_of_client(client);
    return (struct link){&ops, r};
}
