/*
 * model.c - the table of models and what all of them share.
 *
 * Invariant: values and gradients are never kept between calls; a model holds scratch memory only.
 * Threads: a model belongs to one thread at a time; different models may run side by side.
 */
#include "worker/train/model_rule.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct model_rule *const rules[] = {&model_rule_toy, &model_rule_linear,
                                                 &model_rule_softmax, &model_rule_mlp};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))
#define EVALUATE_ROWS 1024u

static const struct model_rule *
rule_find(const char *spec)
{
    for (size_t i = 0; i < N_RULES; i++) {
        size_t n = strlen(rules[i]->name);
        if (strncmp(rules[i]->name, spec, n) == 0 &&
            (spec[n] == '\0' || (spec[n] == ':' && rules[i]->takes_layers)))
            return rules[i];
    }
    return NULL;
}

enum dataset_target
model_target(const char *spec)
{
    const struct model_rule *rule = rule_find(spec);

    return rule && rule->numbers ? DATASET_NUMBERS : DATASET_CLASSES;
}

void
model_add_variable(struct model *m, const char *name, uint32_t n_dims, const uint64_t *shape,
                   const char *init)
{
    struct model_variable *v = &m->variables[m->n_variables++];

    snprintf(v->name, sizeof(v->name), "%s", name);
    v->n_dims = n_dims;
    v->elements = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        v->shape[i] = shape[i];
        v->elements *= shape[i];
    }
    v->init = init;
    v->is_bias = strlen(name) > 5 && !strcmp(name + strlen(name) - 5, "/bias");
}

enum dt_status
model_check_spec(const char *spec, struct dt_error *err)
{
    if (!rule_find(spec))
        return dt_fail(err, DT_E_USAGE,
                       "model '%.80s' is unknown: use toy, linear, softmax or mlp:H1,H2,...", spec);
    if (strlen(spec) >= sizeof(((struct model *)NULL)->spec))
        return dt_fail(err, DT_E_USAGE, "model '%.80s...' is longer than %zu characters", spec,
                       sizeof(((struct model *)NULL)->spec) - 1);
    return DT_OK;
}

/* `like` says everything but its rule's part. */
static enum dt_status
create(const struct model *like, struct model **out, struct dt_error *err)
{
    struct model *m = calloc(1, sizeof(*m));

    *out = NULL;
    if (!m)
        return dt_fail(err, DT_E_NO_MEMORY, "model %s: memory is short", like->spec);
    m->rule = like->rule;
    memcpy(m->spec, like->spec, sizeof(m->spec));
    m->n_features = like->n_features;
    m->n_classes = like->n_classes;
    m->max_batch = like->max_batch;
    m->least_chunk = like->least_chunk;
    m->seed = like->seed;
    enum dt_status s = m->rule->prepare(m, err);
    if (s != DT_OK) {
        model_destroy(m);
        return s;
    }
    *out = m;
    return DT_OK;
}

enum dt_status
model_twin(const struct model *m, struct model **out, struct dt_error *err)
{
    struct model like = *m;

    like.least_chunk = 1;
    return create(&like, out, err);
}

enum dt_status
model_create(const char *spec, uint32_t n_features, uint32_t n_classes, uint32_t max_batch,
             uint64_t seed, struct model **out, struct dt_error *err)
{
    const struct model_rule *rule = rule_find(spec);

    *out = NULL;
    if (model_check_spec(spec, err) != DT_OK)
        return DT_E_USAGE;
    if (rule->needs_data && (n_features == 0 || (n_classes == 0 && !rule->numbers)))
        return dt_fail(err, DT_E_USAGE, "model %s needs data: name them with --data", spec);

    struct model like = {.rule = rule,
                         .n_features = n_features,
                         .n_classes = n_classes,
                         .max_batch = max_batch ? max_batch : 1,
                         .least_chunk = EVALUATE_ROWS,
                         .seed = seed};
    snprintf(like.spec, sizeof(like.spec), "%s", spec);
    return create(&like, out, err);
}

void
model_destroy(struct model *m)
{
    if (!m)
        return;
    free(m->x);
    free(m->z);
    for (uint32_t l = 0; l < MODEL_MAX_LAYERS; l++)
        free(m->a[l]);
    free(m->d[0]);
    free(m->d[1]);
    free(m);
}

const char *
model_spec(const struct model *m)
{
    return m->spec;
}

bool
model_needs_data(const struct model *m)
{
    return m->rule->needs_data;
}

uint32_t
model_n_variables(const struct model *m)
{
    return m->n_variables;
}

const struct model_variable *
model_variable(const struct model *m, uint32_t index)
{
    return index < m->n_variables ? &m->variables[index] : NULL;
}

enum dt_status
model_check_data(const struct model *m, const struct dataset *data, struct dt_error *err)
{
    if (!m->rule->needs_data)
        return DT_OK;
    if (data->n_features != m->n_features)
        return dt_fail(
            err, DT_E_DATA,
            "the data have %u features a row, model %s has %u: use the data set that the "
            "model was trained on",
            data->n_features, m->spec, m->n_features);
    if (m->rule->numbers)
        return DT_OK;
    if (data->t)
        return dt_fail(err, DT_E_DATA,
                       "the data have numbers to predict, model %s needs classes: use model linear",
                       m->spec);
    if (data->n_classes > m->n_classes)
        return dt_fail(err, DT_E_DATA,
                       "the data have labels up to %u, model %s has %u classes: use the data set "
                       "that the model was trained on",
                       data->n_classes - 1, m->spec, m->n_classes);
    return DT_OK;
}

static bool
need_all(struct model *m)
{
    bool go_on = true;

    for (uint32_t i = 0; !m->rule->needs_by_layer && i < m->n_variables; i++)
        go_on = go_on && model_need(m, i);
    return go_on;
}

double
model_gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
               const float *const *values, float *const *gradients)
{
    double loss;

    m->told = m->asked = 0;
    m->gave_up = false;
    if (!need_all(m))
        return NAN;
    loss = m->rule->gradient(m, data, rows, n, values, gradients);
    for (uint32_t i = 0; gradients && !m->gave_up && i < m->n_variables; i++)
        model_ready(m, i, loss);
    return loss;
}

void
model_on_need(struct model *m, model_need_fn *need, void *arg)
{
    m->need = need;
    m->need_arg = arg;
}

bool
model_need(struct model *m, uint32_t variable)
{
    if (!m->need || m->asked & (1u << variable))
        return true;
    m->asked |= 1u << variable;
    m->gave_up = !m->need(m->need_arg, variable);
    return !m->gave_up;
}

void
model_on_ready(struct model *m, model_ready_fn *ready, void *arg)
{
    m->ready = ready;
    m->ready_arg = arg;
}

void
model_ready(struct model *m, uint32_t variable, double loss)
{
    if (!m->ready || m->told & (1u << variable))
        return;
    m->told |= 1u << variable;
    m->ready(m->ready_arg, variable, loss);
}

void
model_evaluate(struct model *m, const struct dataset *data, const float *const *values,
               struct model_score *out)
{
    double loss = 0;
    uint64_t right = 0;

    if (!m->rule->needs_data) {
        out->loss = m->rule->gradient(m, NULL, NULL, 0, values, NULL);
        out->accuracy = NAN;
        return;
    }
    if (data->n_rows == 0) {
        *out = (struct model_score){NAN, NAN};
        return;
    }
    for (uint64_t first = 0; first < data->n_rows; first += m->chunk) {
        uint64_t left = data->n_rows - first;
        uint32_t n = left < m->chunk ? (uint32_t)left : m->chunk;
        loss += m->rule->score(m, data, first, n, values, &right);
    }
    out->loss = loss / (double)data->n_rows;
    out->accuracy = m->rule->numbers ? NAN : (double)right / (double)data->n_rows;
}

void
model_set_threads(int n)
{
    openblas_set_num_threads(n > 0 ? n : 1);
}

int
model_threads(void)
{
    return openblas_get_num_threads();
}

const char *
model_cpu_kernel(void)
{
    return openblas_get_corename();
}
