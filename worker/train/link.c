/*
 * link.c - the plain way: a client of psd. The loop's thread.
 */
#include "worker/train/link.h"

#include "proto/base/log.h"

#define STOP_MS 10000

static enum dtw_status
declare(void *self, const struct dtw_variable *v, struct dtw_error *err)
{
    return dtw_declare(self, v, NULL, err);
}

static enum dtw_status
init(void *self, dtw_init_fn *fill, void *arg, uint64_t *first_step, struct dtw_error *err)
{
    return dtw_init(self, fill, arg, first_step, err);
}

static enum dtw_status
join(void *self, uint64_t *first_step, struct dtw_error *err)
{
    return dtw_join(self, first_step, err);
}

static enum dtw_status
finish(void *self, struct dtw_handle *h, const float *const *gradients, float *const *values,
       struct dtw_result *r, struct dtw_error *err)
{
    (void)self;
    (void)gradients;
    (void)values;
    return dtw_wait(h, -1, r, err);
}

static enum dtw_status
pull(void *self, float *const *values, uint64_t want, struct dtw_result *r, struct dtw_error *err)
{
    struct dtw_handle *h = NULL;

    enum dtw_status s = dtw_pull(self, values, want, &h, err);
    return s == DTW_OK ? dtw_wait(h, -1, r, err) : s;
}

static enum dtw_status
push(void *self, const float *const *gradients, uint64_t weight, unsigned count,
     struct dtw_result *r, struct dtw_error *err)
{
    struct dtw_handle *h = NULL;

    enum dtw_status s = dtw_push(self, gradients, weight, count, &h, err);
    return s == DTW_OK ? dtw_wait(h, -1, r, err) : s;
}

static enum dtw_status
step(void *self, const float *const *gradients, float *const *values, uint64_t weight,
     unsigned count, struct dtw_result *r, struct dtw_error *err)
{
    return dtw_step(self, gradients, values, weight, count, r, err);
}

/* psd lets those go who wait for a step that nobody can bring. */
static enum dtw_status
wait_step(void *self, uint64_t step_wanted, struct dtw_error *err)
{
    enum dtw_status s = dtw_wait_step(self, step_wanted, -1, err);

    if (s == DTW_OK && step_wanted != UINT64_MAX && dtw_global_step(self) < step_wanted)
        dt_log(DT_LOG_NOTICE,
               "--wait-for-step %llu will not come: the others have ended, or stop before it; this "
               "worker begins at global step %llu",
               (unsigned long long)step_wanted, (unsigned long long)dtw_global_step(self));
    return s;
}

static void
stop_all(void *self)
{
    dtw_set_stop_step(self, dtw_global_step(self), STOP_MS, NULL);
}

static bool
is_stopped(void *self)
{
    return dtw_global_step(self) >= dtw_stop_step(self);
}

static uint64_t
worker_step(void *self)
{
    return dtw_worker_step(self);
}

struct link
link_of_client(struct dtw_client *client)
{
    static const struct link_ops ops = {declare, init,      join,     pull,       push,       step,
                                        finish,  wait_step, stop_all, is_stopped, worker_step};

    return (struct link){&ops, client};
}
