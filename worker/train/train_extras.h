/*
 * train_extras.h - what a training adds to its rules: a schedule of the rate, clipping, weight decay
 * (psd/optim/extras.h), by value and by norm.
 *
 * They belong to the rule whose steps count: the server's, or the local one where there is no psd or its rule has
 * no rate (add). A local rule beside a server's has clip and decay too, and its rate follows that of the server's in
 * proportion. Weight decay is for weights alone: variables that are a bias have none. Any thread.
 */
#ifndef TRAIN_TRAIN_EXTRAS_H
#define TRAIN_TRAIN_EXTRAS_H

#include "psd/optim/optimizer.h"
#include "worker/train/algorithm.h"
#include "worker/train/model.h"

#define TRAIN_MAX_SCHEDULE 17 /* 8 pieces of two and the warm-up */
#define TRAIN_MAX_PARAMS (TRAIN_MAX_SCHEDULE + 2)

struct train_extras {
    struct optimizer_param
        schedule[TRAIN_MAX_SCHEDULE]; /* names are static; the warm-up among them */
    unsigned n_schedule;
    float clip_value;   /* 0: none, as the next */
    float weight_decay; /* of weights */
    float clip_norm;    /* of each batch's gradient over all variables, by the worker */
};

/* Is it the local rule that counts? */
bool train_extras_are_local(const struct algorithm *row);
/* The parameters, beside its lr, of the rule that counts (`scheduled`), or of a local one beside it, for a weight
 * or a bias. Returns how many, at most TRAIN_MAX_PARAMS. */
unsigned train_extras_params(const struct train_extras *e, bool scheduled, bool is_bias,
                             struct optimizer_param *out);
/* Scale the gradients so that their norm over all variables is at most clip_norm (tf.clip_by_global_norm). */
void train_extras_clip_norm(const struct train_extras *e, const struct model *m,
                            float *const *gradients);

#endif
