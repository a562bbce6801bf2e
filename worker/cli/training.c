/*
 * training.c - from the options of a training to its model and the plan of its loop. Threads: main.
 */
#include "worker/cli/training.h"

#include <string.h>

#include "worker/cli/extras.h"
#include "worker/cli/row.h"
#include "worker/cli/stop.h"

static enum dt_status
check_data(const struct training *t, struct dt_error *err)
{
    enum dt_status r = DT_OK;

    if (t->data.loaded)
        r = model_check_data(t->model, &t->data.train, err);
    if (r == DT_OK && t->data.test.n_rows > 0)
        r = model_check_data(t->model, &t->data.test, err);
    return r == DT_OK ? r : dt_fail_prefix(err, "%s", t->s->data);
}

enum dt_status
training_open_model(struct training *t, struct dt_error *err)
{
    const struct settings *s = t->s;

    enum dt_status r = model_create(s->model, t->data.train.n_features, t->data.train.n_classes,
                                    (uint32_t)s->batch, s->seed, &t->model, err);
    if (r == DT_OK)
        r = check_data(t, err);
    if (r == DT_OK)
        settings_length(s, training_rows(t), &t->steps, &t->steps_per_epoch);
    return r;
}

enum dt_status
training_plan(const struct training *t, struct loop_plan *out, struct dt_error *err)
{
    const struct settings *s = t->s;
    struct train_extras extras;

    enum dt_status r = settings_extras(s, &extras, err);
    *out = (struct loop_plan){
        .algorithm = &t->row,
        .model = t->model,
        .train = t->data.loaded ? &t->data.train : NULL,
        .test = t->data.loaded ? &t->data.test : NULL,
        .rank = (uint32_t)s->rank,
        .workers = (uint32_t)s->workers,
        .batch = (uint32_t)s->batch,
        .replicas = (uint32_t)s->replicas,
        .aggregate = (uint32_t)s->aggregate,
        .by_batches = strcmp(settings_reduce(s), "mean") != 0,
        .overlap = s->overlap,
        .steps = t->steps,
        .steps_per_epoch = t->steps_per_epoch,
        .target_accuracy = s->target_accuracy,
        .seed = s->seed,
        .lr = (float)settings_lr(s),
        .rank_lr = (float)settings_rank_lr(s),
        .local_lr = (float)settings_local_lr(s),
        .extras = extras,
        .alpha = (float)settings_alpha(s),
        .momentum = (float)settings_momentum(s),
        .window = t->row.window,
        .wait_for_step = s->wait_for_step,
        .final_values = s->save != NULL,
        .step_delay_ms = (int64_t)s->step_delay_ms,
        .stop_fd = stop_fd(),
    };
    return r;
}
