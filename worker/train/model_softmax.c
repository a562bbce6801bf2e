/*
 * model_softmax.c - softmax regression: logits z = x W + b, mean cross entropy.
 *
 * For a row with label y: loss = log(sum_j exp(z_j)) - z_y, dL/dz = softmax(z) - onehot(y);
 * dL/dW = x^T dz / n, dL/db = sum dz / n. The largest logit is taken out before exp, so nothing
 * overflows; sums of losses and of exponentials are in double. NaN in the values gives a NaN loss.
 * Threads: those of model.c; OpenBLAS may use threads of its own inside (model_set_threads).
 */
#include "worker/train/model_rule.h"

#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL, BIAS };

#define EVALUATE_ROWS 1024u
#define SCRATCH_ELEMENTS (UINT64_C(16) << 20) /* 64 MiB of gathered rows at most */

/* Rows that fit: at least one, enough for a batch where memory allows. */
static uint32_t
chunk_rows(const struct model *m)
{
    uint64_t wide = m->n_features > m->n_classes ? m->n_features : m->n_classes;
    uint64_t fit = SCRATCH_ELEMENTS / wide;
    uint64_t want = m->max_batch > EVALUATE_ROWS ? m->max_batch : EVALUATE_ROWS;

    if (want > fit)
        want = fit;
    return want > 0 ? (uint32_t)want : 1;
}

static enum dt_status
softmax_prepare(struct model *m, struct dt_error *err)
{
    uint64_t kernel[2] = {m->n_features, m->n_classes};
    uint64_t bias[1] = {m->n_classes};

    if (m->n_features > INT_MAX || m->n_classes > INT_MAX ||
        kernel[0] * kernel[1] > UINT64_C(1) << 40)
        return dt_fail(err, DT_E_DATA, "softmax: %u features x %u classes is too large",
                       m->n_features, m->n_classes);
    model_add_variable(m, "dense/kernel", 2, kernel, "zeros");
    model_add_variable(m, "dense/bias", 1, bias, "zeros");
    m->chunk = chunk_rows(m);
    m->x = malloc((size_t)m->chunk * m->n_features * sizeof(*m->x));
    m->z = malloc((size_t)m->chunk * m->n_classes * sizeof(*m->z));
    if (!m->x || !m->z)
        return dt_fail(err, DT_E_NO_MEMORY, "softmax: no memory for a batch of %u rows", m->chunk);
    return DT_OK;
}

/* z [n, classes] = x [n, features] W [features, classes] + b */
static void
logits(const struct model *m, const float *x, uint32_t n, const float *const *values)
{
    int f = (int)m->n_features;
    int c = (int)m->n_classes;

    for (uint32_t i = 0; i < n; i++)
        memcpy(m->z + (size_t)i * m->n_classes, values[BIAS], m->n_classes * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, c, f, 1.0f, x, f, values[KERNEL],
                c, 1.0f, m->z, c);
}

static float
largest(const float *z, uint32_t n)
{
    float top = z[0];

    for (uint32_t j = 1; j < n; j++) {
        if (z[j] > top)
            top = z[j];
    }
    return top;
}

/* log(sum(exp(z))) */
static double
log_sum_exp(const float *z, uint32_t n)
{
    double top = largest(z, n);
    double sum = 0;

    for (uint32_t j = 0; j < n; j++)
        sum += exp((double)z[j] - top);
    return top + log(sum);
}

/* Loss of one row. A label that the model does not have can only be lost: infinite. */
static double
row_loss(const struct model *m, const float *z, uint32_t label, double lse)
{
    return label < m->n_classes ? lse - (double)z[label] : INFINITY;
}

/* z becomes (softmax(z) - onehot(label)) * scale */
static void
row_gradient(const struct model *m, float *z, uint32_t label, double lse, double scale)
{
    for (uint32_t j = 0; j < m->n_classes; j++)
        z[j] = (float)((exp((double)z[j] - lse) - (j == label ? 1.0 : 0.0)) * scale);
}

static void
gather(const struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n)
{
    size_t width = m->n_features;

    for (uint32_t i = 0; i < n; i++)
        memcpy(m->x + i * width, data->x + rows[i] * width, width * sizeof(float));
}

/* gradients += those of the n rows whose dz stands in m->z; the first chunk overwrites. */
static void
accumulate(const struct model *m, uint32_t n, bool first, float *const *gradients)
{
    int f = (int)m->n_features;
    int c = (int)m->n_classes;

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, c, (int)n, 1.0f, m->x, f, m->z, c,
                first ? 0.0f : 1.0f, gradients[KERNEL], c);
    if (first)
        memset(gradients[BIAS], 0, m->n_classes * sizeof(float));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < m->n_classes; j++)
            gradients[BIAS][j] += m->z[(size_t)i * m->n_classes + j];
    }
}

static double
softmax_gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
                 const float *const *values, float *const *gradients)
{
    double loss = 0;

    for (uint32_t done = 0, part; done < n; done += part) {
        part = n - done < m->chunk ? n - done : m->chunk;
        gather(m, data, rows + done, part);
        logits(m, m->x, part, values);
        for (uint32_t i = 0; i < part; i++) {
            float *z = m->z + (size_t)i * m->n_classes;
            uint32_t label = data->y[rows[done + i]];
            double lse = log_sum_exp(z, m->n_classes);
            loss += row_loss(m, z, label, lse);
            if (gradients)
                row_gradient(m, z, label, lse, 1.0 / n);
        }
        if (gradients)
            accumulate(m, part, done == 0, gradients);
    }
    return loss / n;
}

static double
softmax_score(struct model *m, const struct dataset *data, uint64_t first, uint32_t n,
              const float *const *values, uint64_t *right)
{
    double loss = 0;

    logits(m, data->x + first * m->n_features, n, values);
    for (uint32_t i = 0; i < n; i++) {
        const float *z = m->z + (size_t)i * m->n_classes;
        uint32_t label = data->y[first + i];
        loss += row_loss(m, z, label, log_sum_exp(z, m->n_classes));
        uint32_t best = 0;
        for (uint32_t j = 1; j < m->n_classes; j++) {
            if (z[j] > z[best])
                best = j;
        }
        *right += best == label;
    }
    return loss;
}

const struct model_rule model_rule_softmax = {
    .name = "softmax",
    .needs_data = true,
    .prepare = softmax_prepare,
    .gradient = softmax_gradient,
    .score = softmax_score,
};
