/*
 * loop.h - the training loop: one loop drives every row of the table of algorithms.
 *
 * A loop owns the values and gradients of a model and goes from step to step: rows of the step,
 * gradient, exchange. Data are addressable (order.h), so nothing but the step is kept, and a worker that
 * lost its life goes on at the step that its JOIN named. It neither opens nor leaves the job: the caller does.
 *
 * Thread rule: one thread; it has others for its replicas (replicas.h). Blocking: loop_run returns when the steps are done, at an error, or soon
 * after `stop_fd` became readable.
 */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "worker/lib/dtworker.h"
#include "worker/train/algorithm.h"
#include "worker/train/dataset.h"
#include "worker/train/link.h"
#include "worker/train/model.h"
#include "worker/train/phases.h"
#include "worker/train/staleness.h"
#include "worker/train/train_extras.h"

struct loop_point {   /* where the training is, after a step */
    uint64_t step;    /* sync: updates that the values have seen, times T; else own batches done */
    uint64_t steps;   /* the end */
    uint64_t epoch;   /* whole epochs done */
    bool epoch_end;   /* this step ended (at least) one */
    double loss;      /* mean over the own rows, before its update; NAN: no batch yet */
    double accuracy;  /* on the test rows at an epoch end; NAN elsewhere and without test rows */
    uint64_t samples; /* own rows pushed so far */
    double seconds;   /* since the first values were there */
    const double *phases; /* where they went, by enum phase (the loop's own) */
    uint64_t stale;       /* own pushes that came too late and were dropped whole */
    uint64_t partial;     /* own pushes of which some slices were dropped */
    const struct staleness
        *staleness; /* async: of all own pushes so far (the loop's own); NULL: not async */
};
typedef void loop_point_fn(void *arg, const struct loop_point *point);

struct loop_plan { /* everything is borrowed for the life of the loop */
    const struct algorithm *algorithm;
    struct model *model;
    const struct dataset *train; /* NULL: a model without data */
    const struct dataset *test;  /* may be NULL or empty */
    struct dtw_client *client;   /* open, nothing declared; NULL when the algorithm needs no psd */
    struct link link;            /* without ops: the client's own */
    uint32_t rank, workers, batch;
    uint32_t replicas;  /* K: threads, each with a batch a step; 0: one */
    uint32_t aggregate; /* > workers: N batches a round, shared by the workers (order_share) */
    bool by_batches;    /* then: their mean is by batches, not by rows */
    uint64_t steps;     /* the end of the training, >= 1 */
    uint64_t steps_per_epoch; /* >= 1 */
    double target_accuracy;   /* > 0: stop at the first epoch end that has it */
    uint64_t seed;
    float lr;              /* of the server's rule; of the local one where psd's has none */
    float rank_lr;         /* > 0: this worker's gradient is multiplied by it (has_rank_rates) */
    float local_lr;        /* of the local rule beside a server's */
    float alpha, momentum; /* elastic rows; rows that look ahead */
    struct train_extras extras;
    uint64_t wait_for_step; /* async: begin when the global step has come so far; 0: at once */
    uint32_t window;        /* T: batches between two exchanges; 0: the algorithm's own */
    bool overlap;           /* send a gradient while it is being computed; one replica, with psd */
    bool final_values;      /* async: in the end wait for the other workers, then pull once more */
    int64_t step_delay_ms;  /* wait so long before each gradient: imitates a slow machine */
    int stop_fd;            /* -1: none */
    loop_point_fn *point;   /* called after each step; may be NULL */
    void *point_arg;
};

enum loop_end {
    LOOP_RUNNING,
    LOOP_DONE,       /* all steps, or the target accuracy */
    LOOP_STOPPED,    /* stop_fd */
    LOOP_NOT_FINITE, /* the loss is NaN or Inf: `text` says at which step */
    LOOP_FAILED,     /* `status` and `text` */
};

struct loop_result {
    enum loop_end end;
    enum dtw_status status;
    char text[512];
    bool target_reached;
    uint64_t first_step; /* the step from which this worker counted */
    uint64_t pushes;     /* answered by psd (local: updates) */
    uint64_t accepted;   /* of these: taken, at least in part */
    uint64_t refused;    /* of these: refused whole */
    uint64_t lives_lost; /* how often the lease ended */
    uint64_t unseen;     /* own rows of the steps run that were not taken from this process */
    struct staleness staleness; /* async: of the own pushes that were applied */
    double phases[N_PHASES];    /* seconds until the last step's end */
    struct loop_point last;     /* its `staleness` and `phases` end with the loop */
};

struct loop;

/* DT_E_NO_MEMORY or DT_E_INTERNAL. */
enum dt_status loop_create(const struct loop_plan *plan, struct loop **out, struct dt_error *err);
void loop_destroy(struct loop *l); /* NULL-safe */
void loop_run(struct loop *l, struct loop_result *result);
/* The same by hand: first values; one window and its exchange after the other while true is returned (with overlap
 * an exchange may end in the next call); the end. */
void loop_begin(struct loop *l);
bool loop_next(struct loop *l);
void loop_end(struct loop *l, struct loop_result *result);
/* The values after loop_run: of one step, also when it was stopped or failed; of elastic rows those of the centre.
 * NULL: there were none. */
const float *const *loop_values(const struct loop *l);

#endif
