/*
 * model_rule.h - private to the model files: the row of the table and what a model holds.
 */
#ifndef TRAIN_MODEL_RULE_H
#define TRAIN_MODEL_RULE_H

#include <stddef.h>

#include "worker/train/model.h"

struct model_rule {
    const char *name;
    bool needs_data;
    /* Add the variables and make scratch memory. */
    enum dt_status (*prepare)(struct model *m, struct dt_error *err);
    double (*gradient)(struct model *m, const struct dataset *data, const uint64_t *rows,
                       uint32_t n, const float *const *values, float *const *gradients);
    /* Sum of the losses and number of right answers of rows [first, first + n). NULL: no data. */
    double (*score)(struct model *m, const struct dataset *data, uint64_t first, uint32_t n,
                    const float *const *values, uint64_t *right);
};

struct model {
    const struct model_rule *rule;
    char spec[64];
    uint32_t n_features;
    uint32_t n_classes;
    uint32_t max_batch;
    uint64_t seed;
    uint32_t n_variables;
    struct model_variable variables[MODEL_MAX_VARIABLES];
    uint32_t chunk; /* rows that the scratch memory holds */
    float *x;       /* owned; chunk x features: gathered rows */
    float *z;       /* owned; chunk x classes: logits, then their gradient */
};

extern const struct model_rule model_rule_toy;
extern const struct model_rule model_rule_softmax;

void model_add_variable(struct model *m, const char *name, uint32_t n_dims, const uint64_t *shape,
                        const char *init);

#endif
