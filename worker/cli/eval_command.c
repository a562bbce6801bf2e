/*
 * eval_command.c - dtworker eval: loss and accuracy of saved values, from the file's own metadata.
 * Threads: main alone.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/parse.h"
#include "proto/base/plural.h"
#include "worker/cli/affinity.h"
#include "worker/cli/command.h"
#include "worker/cli/score.h"
#include "worker/train/safetensors.h"
#include "worker/train/json_out.h"

struct evaluation {
    const struct settings *s;
    struct model_file file;
    struct data data;
    struct model *model; /* owned */
    const float *values[MODEL_MAX_VARIABLES];
    struct score score;
};

static const char *
meta(const struct evaluation *e, const char *key)
{
    const char *value = model_file_meta(&e->file, key);

    return value ? value : "";
}

/* "28,28" -> 784; 0: not a list of numbers. */
static uint32_t
features_of(const char *input)
{
    uint64_t product = *input ? 1 : 0;
    char part[16];

    while (*input) {
        size_t n = strcspn(input, ",");
        uint64_t dim = 0;
        if (n >= sizeof(part))
            return 0;
        memcpy(part, input, n);
        part[n] = '\0';
        if (!dt_parse_u64(part, &dim) || dim == 0 || dim > UINT32_MAX || product > UINT32_MAX / dim)
            return 0;
        product *= dim;
        input += n + (input[n] == ',');
    }
    return (uint32_t)product;
}

static enum dt_status
damaged(const struct evaluation *e, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA, "%s: %s: it is no file of dtworker train --save",
                   e->s->model_file, what);
}

static enum dt_status
open_model(struct evaluation *e, struct dt_error *err)
{
    uint64_t classes = 0;
    uint32_t features = features_of(meta(e, "input"));

    if (strcmp(meta(e, "format"), MODEL_FILE_FORMAT) != 0)
        return damaged(e, "its metadata do not say format " MODEL_FILE_FORMAT, err);
    if (!dt_parse_u64(meta(e, "classes"), &classes) || classes > 1 << 24)
        return damaged(e, "its metadata have no number of classes", err);
    if (features > 1 << 24)
        return damaged(e, "its metadata have a senseless input shape", err);
    if (strcmp(meta(e, "model"), "toy") != 0 && features == 0)
        return damaged(e, "its metadata have no input shape", err);
    if (model_create(meta(e, "model"), features, (uint32_t)classes, 1024, 0, &e->model, err) !=
        DT_OK)
        return damaged(e, "its metadata name a model that this dtworker does not know", err);
    return DT_OK;
}

static bool
same_shape(const struct model_file_tensor *t, const struct model_variable *v)
{
    return t->n_dims == v->n_dims && memcmp(t->shape, v->shape, v->n_dims * sizeof(*v->shape)) == 0;
}

/* What a diverged training has saved can be read, but not evaluated. */
static enum dt_status
check_finite(const struct evaluation *e, const struct model_file_tensor *t, struct dt_error *err)
{
    for (uint64_t k = 0; k < t->elements; k++) {
        if (!isfinite(t->data[k]))
            return dt_fail(err, DT_E_DATA,
                           "%s: tensor %s holds %g at element %llu, which is not finite: evaluate "
                           "values of a training that converged",
                           e->s->model_file, t->name, (double)t->data[k], (unsigned long long)k);
    }
    return DT_OK;
}

static enum dt_status
find_values(struct evaluation *e, struct dt_error *err)
{
    for (uint32_t i = 0; i < model_n_variables(e->model); i++) {
        const struct model_variable *v = model_variable(e->model, i);
        const struct model_file_tensor *t = model_file_find(&e->file, v->name);
        if (!t)
            return dt_fail(err, DT_E_DATA, "%s: tensor %s of model %s is not there",
                           e->s->model_file, v->name, model_spec(e->model));
        if (!same_shape(t, v))
            return dt_fail(err, DT_E_DATA, "%s: tensor %s has not the shape of its metadata",
                           e->s->model_file, v->name);
        enum dt_status r = check_finite(e, t, err);
        if (r != DT_OK)
            return r;
        e->values[i] = t->data;
    }
    return DT_OK;
}

/* The normalisation that the values were trained with. */
static void
rescale(struct dataset *d, float scale)
{
    float factor = scale / d->scale;

    if (factor == 1.0f)
        return;
    for (uint64_t i = 0; i < d->n_rows * d->n_features; i++)
        d->x[i] *= factor;
    d->scale = scale;
}

static enum dt_status
open_data(struct evaluation *e, struct dt_error *err)
{
    double scale = 0;

    if (!model_needs_data(e->model))
        return DT_OK;
    if (!e->s->data)
        return dt_fail(err, DT_E_USAGE, "evaluate on which data? name them with --data PATH");
    if (!dt_parse_double(meta(e, "scale"), &scale) || !(scale > 0) || scale > 1e30)
        return damaged(e, "its metadata have no scale", err);
    enum dt_status r = data_load(&e->data, e->s->data, meta(e, "model"), e->s, err);
    if (r != DT_OK)
        return r;
    r = model_check_data(e->model, &e->data.train, err);
    if (r == DT_OK && e->data.test.n_rows > 0)
        r = model_check_data(e->model, &e->data.test, err);
    if (r != DT_OK)
        return dt_fail_prefix(err, "%s", e->s->data);
    rescale(&e->data.train, (float)scale);
    if (e->data.test.n_rows > 0)
        rescale(&e->data.test, (float)scale);
    return DT_OK;
}

static enum dt_status
put_json(const struct evaluation *e, struct dt_error *err)
{
    const struct score *c = &e->score;
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "model", meta(e, "model"), "job",
        meta(e, "job"), "step", meta(e, "step"), "train_rows", (json_int_t)e->data.train.n_rows,
        "test_rows", (json_int_t)e->data.test.n_rows, "train_loss", json_number(c->train.loss),
        "train_accuracy", json_number(c->train.accuracy), "test_loss", json_number(c->test.loss),
        "test_accuracy", json_number(c->test.accuracy));
    uint64_t step;
    if (o && dt_parse_u64(meta(e, "step"), &step))
        json_object_set_new(o, "step", json_integer((json_int_t)step));
    return json_put_line(o, stdout) ? DT_OK
                                    : dt_fail(err, DT_E_IO, "the result could not be written");
}

/* A model for numbers has no accuracy, a data set maybe no test rows, toy no rows at all. */
static void
put_score(const char *set, const struct model_score *score, uint64_t rows)
{
    char label[32];
    char of[32] = "";

    if (rows > 0)
        snprintf(of, sizeof(of), " (%llu row%s)", (unsigned long long)rows, dt_plural(rows));
    if (isfinite(score->accuracy)) {
        snprintf(label, sizeof(label), "%s accuracy", set);
        printf("%-14s %.4f%s\n", label, score->accuracy, of);
        of[0] = '\0';
    }
    snprintf(label, sizeof(label), "%s loss", set);
    if (!isnan(score->loss))
        printf("%-14s %.6g%s\n", label, score->loss, of);
}

static void
put_text(const struct evaluation *e)
{
    const struct score *c = &e->score;

    printf("%s, step %s\n", meta(e, "model"), meta(e, "step"));
    put_score("test", &c->test, e->data.test.n_rows);
    put_score("train", &c->train, e->data.train.n_rows);
}

static enum dt_status
evaluate(struct evaluation *e, struct dt_error *err)
{
    if (!e->s->model_file)
        return dt_fail(err, DT_E_USAGE, "evaluate which values? name them with --model-file FILE");
    model_set_threads(e->s->threads > 0 ? (int)e->s->threads : processors());
    enum dt_status r = model_file_load(e->s->model_file, &e->file, err);
    if (r == DT_OK)
        r = open_model(e, err);
    if (r == DT_OK)
        r = find_values(e, err);
    if (r == DT_OK)
        r = open_data(e, err);
    if (r != DT_OK)
        return r;
    data_score(&e->data, e->model, e->values, &e->score);
    if (e->s->json)
        return put_json(e, err);
    put_text(e);
    return DT_OK;
}

int
eval_command(struct settings *s, char **positional)
{
    struct evaluation e = {.s = s};
    struct dt_error err = {DT_OK, ""};

    (void)positional;
    enum dt_status r = evaluate(&e, &err);
    model_destroy(e.model);
    data_deinit(&e.data);
    model_file_deinit(&e.file);
    return r == DT_OK ? 0 : command_fail(r, &err);
}
