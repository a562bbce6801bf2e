/*
 * window.h - what a worker does between two exchanges: T batches, each with a local step where the
 * algorithm has a local rule, and the reduction of their gradients (ALGORITHMS section 3).
 *
 * The local rule's slots live here and survive the pull that ends a window. Where the exchange is a delta, what the
 * local steps changed takes the place of the gradients; where it is elastic, nothing is reduced. One thread.
 */
#ifndef TRAIN_WINDOW_H
#define TRAIN_WINDOW_H

#include "psd/optim/optimizer.h"
#include "worker/train/algorithm.h"
#include "worker/train/lookahead.h"
#include "worker/train/model.h"
#include "worker/train/train_extras.h"

struct window {
    const struct algorithm *algorithm; /* borrowed */
    uint32_t n_variables;
    uint64_t elements[MODEL_MAX_VARIABLES];
    bool is_bias[MODEL_MAX_VARIABLES];
    struct optimizer local;      /* when the algorithm names one */
    struct optimizer local_bias; /* the same without weight decay */
    struct optimizer
        server; /* whose rate the local one follows; rule NULL: it has a schedule of its own */
    uint64_t version; /* of the values pulled: the step of the server's schedule */
    float *slots[MODEL_MAX_VARIABLES][OPTIMIZER_MAX_SLOTS]; /* owned; of the local rule */
    float *sums[MODEL_MAX_VARIABLES];   /* owned; NULL where T is 1, and but for gradients */
    float *starts[MODEL_MAX_VARIABLES]; /* owned; deltas: the values at the window's start */
    struct lookahead ahead;             /* when the algorithm has it, instead of `local` */
    float scale;                        /* what is pushed is multiplied by it; 1: as it is */
    uint64_t n_updates;                 /* local updates so far */
    uint32_t n_batches;                 /* in the open window */
};

struct window_rates { /* of the two rules */
    float local;
    float server;                      /* where there is a local rule beside it */
    float momentum;                    /* where the algorithm looks ahead */
    const struct train_extras *extras; /* borrowed for the call; NULL: none */
};

/* Memory for `model` and T = `length`. DT_E_NO_MEMORY, or optimizer_init's. */
enum dt_status window_init(struct window *w, const struct algorithm *algorithm,
                           const struct model *model, uint32_t length,
                           const struct window_rates *rates, struct dt_error *err);
void window_deinit(struct window *w);

/* The values at the window's start. */
void window_open(struct window *w, float *const *values);
/* May its first gradient begin before all values are there? */
bool window_begins_by_variable(const struct window *w);
/* Where the next batch's gradient is to be taken: the values, or a point ahead of them. */
const float *const *window_point(struct window *w, float *const *values);
/* A batch's mean gradient: into the window, and into the values by the local rule. */
void window_add(struct window *w, float *const *values, float *const *gradients);
/* The window's end: `gradients` then hold what is pushed, the sum or the mean over its batches, times scale.
 * Deltas: what the local steps changed since window_open, or that divided by the batches. */
void window_close(struct window *w, float *const *values, float *const *gradients);

/* The same variable by variable, for the last batch of a window: first window_next_batch, then for each variable
 * window_add_variable and window_close_variable, in the end window_end. */
void window_next_batch(struct window *w);
void window_add_variable(struct window *w, uint32_t i, float *values, const float *gradient);
void window_close_variable(struct window *w, uint32_t i, const float *values, float *gradient);
void window_end(struct window *w);

#endif
