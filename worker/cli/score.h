/*
 * score.h - the data of a command, a model that fits them, and how good its values are.
 */
#ifndef CLI_SCORE_H
#define CLI_SCORE_H

#include "worker/cli/settings.h"
#include "worker/train/dataset.h"
#include "worker/train/model.h"

struct score { /* NAN where there are no rows */
    struct model_score train;
    struct model_score test;
};

struct data { /* zero-initialise */
    bool loaded;
    struct dataset train;
    struct dataset test;
};

/* `model`: what it learns from the labels; `s`: --label and --header. */
enum dt_status data_load(struct data *d, const char *path, const char *model,
                         const struct settings *s, struct dt_error *err);
void data_deinit(struct data *d);
/* Over all training and all test rows. Takes as long as an epoch of gradients, at most. */
void data_score(const struct data *d, struct model *m, const float *const *values,
                struct score *out);

#endif
