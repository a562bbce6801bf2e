/*
 * model.h - models: variables, initial values, mean loss and gradient over a batch.
 *
 * A model is a row of a table {name, variables, init, gradient, predict}. The only place that names
 * cblas_. Values and gradients are arrays of pointers, one a variable in the order of model_variables.
 * Initial values depend on (seed, variable index, element position) only (Philox).
 *
 *   toy      the guide's a + b against 100: a, b of two elements each; loss = sum((a+b-100)^2)/2 over
 *            the elements (dL/da = dL/db = a+b-100); no data; zeros at start
 *   linear   least squares: w [features, 1] and b [1] zeros; loss = mean of (x w + b - y)^2 / 2
 *   softmax  weights [features, classes] zeros, bias [classes] zeros; mean cross entropy
 *   mlp:H1,H2,...  hidden layers of H1, H2, ... units with ReLU, then softmax: variables dense1/kernel,
 *            dense1/bias, dense2/kernel, ...; kernels by He's rule (model_init.c), biases zeros
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "worker/train/dataset.h"

#define MODEL_MAX_VARIABLES 32

struct model_variable {
    char name[64]; /* "dense/kernel", "dense/bias" */
    uint32_t n_dims;
    uint64_t shape[4];
    uint64_t elements;
    const char *init; /* "zeros", "he": the word declared to psd */
    bool is_bias;     /* it has no weight decay */
};

struct model; /* opaque; holds scratch memory for one thread of computation */

/* `spec`: "toy", "linear", "softmax", "mlp:128,64". toy needs neither features nor classes, linear no classes.
 * `max_batch` rows a gradient call (more go through the same scratch memory in parts). DT_E_USAGE, DT_E_DATA. */
enum dt_status model_create(const char *spec, uint32_t n_features, uint32_t n_classes,
                            uint32_t max_batch, uint64_t seed, struct model **out,
                            struct dt_error *err);
/* Another one of the same kind with scratch memory of its own, for another thread; of little more than
 * `max_batch` rows. */
enum dt_status model_twin(const struct model *m, struct model **out, struct dt_error *err);
/* Is there a model of that name? DT_E_USAGE with the known ones. */
enum dt_status model_check_spec(const char *spec, struct dt_error *err);
void model_destroy(struct model *m);
/* What a model of that name learns from the label: DATASET_NUMBERS (linear; it has no accuracy), else classes. To be
 * asked before the data are loaded (struct dataset_options). */
enum dataset_target model_target(const char *spec);
const char *model_spec(const struct model *m);
bool model_needs_data(const struct model *m);
uint32_t model_n_variables(const struct model *m);
const struct model_variable *model_variable(const struct model *m, uint32_t index);
void model_init(const struct model *m, uint32_t index, float *values);

/* DT_E_DATA when `data` has other features or more classes than the model, or numbers where it needs classes.
 * Ask before the first gradient. */
enum dt_status model_check_data(const struct model *m, const struct dataset *data,
                                struct dt_error *err);

/* Mean loss and mean gradient over `n` >= 1 rows of `data` (by row number). gradients may be NULL: loss
 * only. toy looks at neither data nor rows (may be NULL). A NaN in the values gives a NaN loss. */
double model_gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
                      const float *const *values, float *const *gradients);

/* Called once for each variable as soon as its gradient is final and the model does not read its values any more
 * for this batch: networks the last layer first, other models in order at the end. `loss` is the batch's mean loss.
 * NULL: nobody. */
typedef void model_ready_fn(void *arg, uint32_t variable, double loss);
void model_on_ready(struct model *m, model_ready_fn *ready, void *arg);

/* Called once a gradient for each variable before its values are read: networks the first layer first, so that they can
 * begin before the last layer's values have come; other models in order at the beginning. False: give up; then the loss is
 * NaN, and gradients and model_on_ready are left alone. NULL: nobody. */
typedef bool model_need_fn(void *arg, uint32_t variable);
void model_on_need(struct model *m, model_need_fn *need, void *arg);

struct model_score {
    double loss;     /* mean over the rows */
    double accuracy; /* share of rows whose largest logit is the label; NAN for toy, linear */
};
/* Over all rows of `data`, in chunks; NAN for both when there are none. toy: data may be NULL. */
void model_evaluate(struct model *m, const struct dataset *data, const float *const *values,
                    struct model_score *out);

/* Threads of the BLAS library in this process (set before the first gradient), and the processor kernel that
 * it uses ("SkylakeX"; static text): sums differ in their last bits between kernels and thread counts. */
void model_set_threads(int n);
int model_threads(void);
const char *model_cpu_kernel(void);

#endif
