/*
 * model_rule.h - private to the model files: the row of the table and what a model holds.
 */
#ifndef TRAIN_MODEL_RULE_H
#define TRAIN_MODEL_RULE_H

#include <stddef.h>

#include "worker/train/model.h"

#define MODEL_MAX_LAYERS (MODEL_MAX_VARIABLES / 2) /* a kernel and a bias each */

struct model_rule {
    const char *name;
    bool needs_data;
    bool takes_layers;   /* "name:H1,H2,..." */
    bool needs_by_layer; /* gradient asks model_need itself */
    bool numbers;        /* predicts a number, not a class: no accuracy */
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
    uint32_t least_chunk; /* rows that the scratch memory is to hold in any case, where it fits */
    uint64_t seed;
    uint32_t n_variables;
    struct model_variable variables[MODEL_MAX_VARIABLES];
    model_ready_fn *ready; /* may be NULL */
    void *ready_arg;
    uint32_t told;       /* one bit a variable: ready was called in this gradient */
    model_need_fn *need; /* NULL: nobody */
    void *need_arg;
    uint32_t asked; /* likewise: need was called */
    bool gave_up;   /* it said no */
    uint32_t chunk; /* rows that the scratch memory holds */
    float *x;       /* owned; chunk x features: gathered rows */
    float *z;       /* owned; chunk x outputs: logits or predictions, then their gradient */

    /* Networks only: layer l maps width[l] inputs to width[l + 1] outputs. */
    uint32_t n_layers;
    uint32_t width[MODEL_MAX_LAYERS + 1];
    float *a[MODEL_MAX_LAYERS]; /* owned; chunk x width[l + 1]: outputs of hidden layer l */
    float *d[2];                /* owned; chunk x widest hidden layer: their gradients in turn */
};

extern const struct model_rule model_rule_toy;
extern const struct model_rule model_rule_linear;
extern const struct model_rule model_rule_softmax;
extern const struct model_rule model_rule_mlp;

void model_add_variable(struct model *m, const char *name, uint32_t n_dims, const uint64_t *shape,
                        const char *init);

/* Scratch memory, model_batch.c: rows that fit when a row takes `floats` at its widest, */
uint32_t model_chunk_rows(const struct model *m, uint64_t floats);
/* `width` floats for each row of a chunk; NULL: memory is short. */
float *model_scratch(const struct model *m, uint64_t width);
/* and m->x := the n rows of `data`. */
void model_gather(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n);

/* Softmax output, model_output.c: loss of one row of logits; its gradient times `scale` takes their
 * place (`lse` as model_row_loss gave it). */
double model_row_loss(const float *z, uint32_t n_classes, uint32_t label, double *lse);
void model_row_gradient(float *z, uint32_t n_classes, uint32_t label, double lse, double scale);
uint32_t model_row_answer(const float *z, uint32_t n_classes);

/* The values of a variable are read from now on. False: give up, the loss is NaN. */
bool model_need(struct model *m, uint32_t variable);
/* The gradient of a variable is final. */
void model_ready(struct model *m, uint32_t variable, double loss);

#endif
