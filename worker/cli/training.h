/*
 * training.h - what dtworker train holds from its data to its final report. Private to train_command.c, which
 * opens and trains, and train_finish.c, which ends.
 */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include <stdatomic.h>
#include <stdio.h>

#include "worker/cli/affinity.h"
#include "worker/cli/progress.h"
#include "worker/cli/report.h"
#include "worker/cli/score.h"
#include "worker/cli/settings.h"
#include "worker/lib/dtworker.h"
#include "worker/train/loop.h"
#include "worker/train/metrics.h"
#include "worker/train/recorder.h"

struct training {
    const struct settings *s;
    struct algorithm row; /* with what the options change in it */
    cpu_set_t cpus;       /* --cpus; empty: any */
    struct data data;
    struct model *model;       /* owned */
    struct dtw_client *client; /* owned; NULL: no psd */
    struct loop *loop;         /* owned */
    struct recorder *recorder; /* owned; --record */
    struct metrics *metrics;   /* owned; --metrics */
    struct metrics *report;    /* owned; --report-fd, for `run` */
    FILE *report_out;          /* owned */
    FILE *text;                /* borrowed: where text for people goes */
    struct progress progress;
    atomic_bool leaving; /* what psd does from here on is of no interest */
    uint64_t steps, steps_per_epoch;
    struct loop_result result;
    struct report final;
};

static inline uint64_t
training_rows(const struct training *t)
{
    return t->data.loaded ? t->data.train.n_rows : 0;
}

/* With the data loaded, or none: the model, and how long to train. */
enum dt_status training_open_model(struct training *t, struct dt_error *err);
/* With `row` and the model: all but the way to psd and what is told of the steps. */
enum dt_status training_plan(const struct training *t, struct loop_plan *out, struct dt_error *err);
/* --save: the loop's values. */
enum dt_status training_save(const struct training *t, struct dt_error *err);

/* Everything after the loop: LEAVE, the final score, --save, the report. The exit code. */
int training_finish(struct training *t);

#endif
