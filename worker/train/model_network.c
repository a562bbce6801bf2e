/*
 * model_network.c - dense layers with a softmax output: softmax regression and multilayer perceptrons.
 *
 * a_0 = x, a_l = max(0, a_(l-1) W_l + b_l) for hidden layers, logits z = a_(L-1) W_L + b_L, mean cross
 * entropy. Backwards: dL/dW_l = a_(l-1)^T d_l / n, dL/db_l = sum d_l / n, d_(l-1) = d_l W_l^T where
 * a_(l-1) > 0, else 0. softmax is a network without hidden layers. NaN in the values gives a NaN loss.
 * Threads: those of model.c; OpenBLAS may use threads of its own inside (model_set_threads).
 */
#include "worker/train/model_rule.h"

#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"

#define MAX_WIDTH (UINT64_C(1) << 20)
#define MAX_KERNEL (UINT64_C(1) << 40)

/* Variables of layer l. */
static uint32_t
kernel_of(uint32_t layer)
{
    return 2 * layer;
}

static uint32_t
bias_of(uint32_t layer)
{
    return 2 * layer + 1;
}

static enum dt_status
add_layer(struct model *m, uint32_t layer, const char *name, const char *init, struct dt_error *err)
{
    uint64_t kernel[2] = {m->width[layer], m->width[layer + 1]};
    char text[64];

    if (kernel[0] > INT_MAX || kernel[1] > INT_MAX || kernel[0] * kernel[1] > MAX_KERNEL)
        return dt_fail(err, DT_E_DATA, "%s: a layer of %u x %u weights is too large", m->spec,
                       m->width[layer], m->width[layer + 1]);
    snprintf(text, sizeof(text), "%s/kernel", name);
    model_add_variable(m, text, 2, kernel, init);
    snprintf(text, sizeof(text), "%s/bias", name);
    model_add_variable(m, text, 1, kernel + 1, "zeros");
    return DT_OK;
}

static enum dt_status
make_scratch(struct model *m, struct dt_error *err)
{
    uint64_t widest = 1;
    uint64_t most = m->n_features > m->n_classes ? m->n_features : m->n_classes;
    bool ok = true;

    for (uint32_t l = 1; l < m->n_layers; l++)
        widest = m->width[l] > widest ? m->width[l] : widest;
    m->chunk = model_chunk_rows(m, widest > most ? widest : most);
    for (uint32_t l = 0; l + 1 < m->n_layers; l++)
        ok = (m->a[l] = model_scratch(m, m->width[l + 1])) && ok;
    for (uint32_t i = 0; m->n_layers > 1 && i < 2; i++)
        ok = (m->d[i] = model_scratch(m, widest)) && ok;
    m->x = model_scratch(m, m->n_features);
    m->z = model_scratch(m, m->n_classes);
    if (!ok || !m->x || !m->z)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory for a batch of %u rows", m->spec,
                       m->chunk);
    return DT_OK;
}

static enum dt_status
softmax_prepare(struct model *m, struct dt_error *err)
{
    m->n_layers = 1;
    m->width[0] = m->n_features;
    m->width[1] = m->n_classes;
    enum dt_status s = add_layer(m, 0, "dense", "zeros", err);
    return s == DT_OK ? make_scratch(m, err) : s;
}

/* The widths in "mlp:256,128": width[1], width[2], ... */
static enum dt_status
read_widths(struct model *m, struct dt_error *err)
{
    const char *p = strchr(m->spec, ':');
    char part[16];
    uint64_t width;

    m->width[0] = m->n_features;
    for (p = p ? p + 1 : "";; p++) {
        size_t n = strcspn(p, ",");
        snprintf(part, sizeof(part), "%.*s", (int)n, p);
        if (n >= sizeof(part) || !dt_parse_u64(part, &width) || width == 0 || width > MAX_WIDTH)
            return dt_fail(
                err, DT_E_USAGE,
                "model '%s': give the widths of the hidden layers, 1 to %llu each, as in "
                "mlp:128 or mlp:256,128",
                m->spec, (unsigned long long)MAX_WIDTH);
        if (m->n_layers + 2 > MODEL_MAX_LAYERS)
            return dt_fail(err, DT_E_USAGE, "model '%s': has more than %d hidden layers", m->spec,
                           MODEL_MAX_LAYERS - 1);
        m->width[++m->n_layers] = (uint32_t)width;
        p += n;
        if (*p == '\0')
            break;
    }
    m->width[++m->n_layers] = m->n_classes;
    return DT_OK;
}

static enum dt_status
mlp_prepare(struct model *m, struct dt_error *err)
{
    char name[16];
    enum dt_status s = read_widths(m, err);

    for (uint32_t l = 0; s == DT_OK && l < m->n_layers; l++) {
        snprintf(name, sizeof(name), "dense%u", l + 1);
        s = add_layer(m, l, name, "he", err);
    }
    return s == DT_OK ? make_scratch(m, err) : s;
}

/* out [n, width[l + 1]] = in [n, width[l]] W + b */
static void
affine(const struct model *m, uint32_t layer, const float *in, uint32_t n,
       const float *const *values, float *out)
{
    int k = (int)m->width[layer];
    int c = (int)m->width[layer + 1];

    for (uint32_t i = 0; i < n; i++)
        memcpy(out + (size_t)i * m->width[layer + 1], values[bias_of(layer)],
               m->width[layer + 1] * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, c, k, 1.0f, in, k,
                values[kernel_of(layer)], c, 1.0f, out, c);
}

/* max(0, a); a NaN stays one. */
static void
rectify(float *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] = a[i] < 0.0f ? 0.0f : a[i];
}

static bool
need_layer(struct model *m, uint32_t layer)
{
    return model_need(m, kernel_of(layer)) && model_need(m, bias_of(layer));
}

/* m->a and m->z := outputs of all layers for the n rows at x. False: the values of one do not come. */
static bool
forward(struct model *m, const float *x, uint32_t n, const float *const *values)
{
    const float *in = x;

    for (uint32_t l = 0; l + 1 < m->n_layers; l++) {
        if (!need_layer(m, l))
            return false;
        affine(m, l, in, n, values, m->a[l]);
        rectify(m->a[l], (size_t)n * m->width[l + 1]);
        in = m->a[l];
    }
    if (!need_layer(m, m->n_layers - 1))
        return false;
    affine(m, m->n_layers - 1, in, n, values, m->z);
    return true;
}

/* Gradients of a layer's variables += those of the n rows with inputs `in` and output gradients `d`;
 * the first chunk overwrites. */
static void
accumulate(const struct model *m, uint32_t layer, const float *in, const float *d, uint32_t n,
           bool first, float *const *gradients)
{
    int k = (int)m->width[layer];
    int c = (int)m->width[layer + 1];
    float *bias = gradients[bias_of(layer)];

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, c, (int)n, 1.0f, in, k, d, c,
                first ? 0.0f : 1.0f, gradients[kernel_of(layer)], c);
    if (first)
        memset(bias, 0, m->width[layer + 1] * sizeof(float));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < m->width[layer + 1]; j++)
            bias[j] += d[(size_t)i * m->width[layer + 1] + j];
    }
}

/* below [n, width[l]] = d W^T where the layer's input was let through, else 0 */
static void
backward(const struct model *m, uint32_t layer, const float *d, uint32_t n,
         const float *const *values, float *below)
{
    int k = (int)m->width[layer];
    int c = (int)m->width[layer + 1];
    const float *in = m->a[layer - 1];

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, k, c, 1.0f, d, c,
                values[kernel_of(layer)], c, 0.0f, below, k);
    for (size_t i = 0; i < (size_t)n * m->width[layer]; i++)
        below[i] = in[i] > 0.0f ? below[i] : 0.0f;
}

/* Which part of the batch; `loss` is the batch's where it is the last. */
struct part {
    uint32_t n_rows;
    bool first, last;
    double loss;
};

/* From dz in m->z down to the first layer. */
static void
add_gradients(struct model *m, const struct part *part, const float *const *values,
              float *const *gradients)
{
    const float *d = m->z;

    for (uint32_t l = m->n_layers; l-- > 0;) {
        accumulate(m, l, l > 0 ? m->a[l - 1] : m->x, d, part->n_rows, part->first, gradients);
        if (l > 0) {
            float *below = m->d[l % 2];
            backward(m, l, d, part->n_rows, values, below);
            d = below;
        }
        if (part->last) {
            model_ready(m, bias_of(l), part->loss);
            model_ready(m, kernel_of(l), part->loss);
        }
    }
}

static double
network_gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
                 const float *const *values, float *const *gradients)
{
    double loss = 0;
    double lse;

    for (uint32_t done = 0, part; done < n; done += part) {
        part = n - done < m->chunk ? n - done : m->chunk;
        model_gather(m, data, rows + done, part);
        if (!forward(m, m->x, part, values))
            return NAN;
        for (uint32_t i = 0; i < part; i++) {
            float *z = m->z + (size_t)i * m->n_classes;
            uint32_t label = data->y[rows[done + i]];
            loss += model_row_loss(z, m->n_classes, label, &lse);
            if (gradients)
                model_row_gradient(z, m->n_classes, label, lse, 1.0 / n);
        }
        if (gradients) {
            struct part p = {part, done == 0, done + part == n, loss / n};
            add_gradients(m, &p, values, gradients);
        }
    }
    return loss / n;
}

static double
network_score(struct model *m, const struct dataset *data, uint64_t first, uint32_t n,
              const float *const *values, uint64_t *right)
{
    double loss = 0;
    double lse;

    forward(m, data->x + first * m->n_features, n, values);
    for (uint32_t i = 0; i < n; i++) {
        const float *z = m->z + (size_t)i * m->n_classes;
        uint32_t label = data->y[first + i];
        loss += model_row_loss(z, m->n_classes, label, &lse);
        *right += model_row_answer(z, m->n_classes) == label;
    }
    return loss;
}

const struct model_rule model_rule_softmax = {
    .name = "softmax",
    .needs_data = true,
    .prepare = softmax_prepare,
    .needs_by_layer = true,
    .gradient = network_gradient,
    .score = network_score,
};

const struct model_rule model_rule_mlp = {
    .name = "mlp",
    .needs_data = true,
    .takes_layers = true,
    .needs_by_layer = true,
    .prepare = mlp_prepare,
    .gradient = network_gradient,
    .score = network_score,
};
