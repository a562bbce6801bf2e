/*
 * model_linear.c - least squares: prediction p = x w + b, loss = mean of (p - y)^2 / 2.
 *
 * dL/dw = x^T (p - y) / n, dL/db = sum (p - y) / n. y is the row's number; where a data set has classes,
 * the class as a number. Sums of losses are in double. Threads: those of model.c.
 */
#include "worker/train/model_rule.h"

#include <cblas.h>
#include <limits.h>

enum { KERNEL, BIAS };

static enum dt_status
linear_prepare(struct model *m, struct dt_error *err)
{
    uint64_t kernel[2] = {m->n_features, 1};
    uint64_t bias[1] = {1};

    if (m->n_features > INT_MAX)
        return dt_fail(err, DT_E_DATA, "linear: %u features are too many", m->n_features);
    model_add_variable(m, "dense/kernel", 2, kernel, "zeros");
    model_add_variable(m, "dense/bias", 1, bias, "zeros");
    m->chunk = model_chunk_rows(m, m->n_features);
    m->x = model_scratch(m, m->n_features);
    m->z = model_scratch(m, 1);
    if (!m->x || !m->z)
        return dt_fail(err, DT_E_NO_MEMORY, "linear: no memory for a batch of %u rows", m->chunk);
    return DT_OK;
}

static float
target(const struct dataset *data, uint64_t row)
{
    return data->t ? data->t[row] : (float)data->y[row];
}

/* z [n] = x [n, features] w + b */
static void
predict(const struct model *m, const float *x, uint32_t n, const float *const *values)
{
    int f = (int)m->n_features;

    for (uint32_t i = 0; i < n; i++)
        m->z[i] = values[BIAS][0];
    cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)n, f, 1.0f, x, f, values[KERNEL], 1, 1.0f, m->z,
                1);
}

/* gradients += those of the n rows whose dz stands in m->z; the first chunk overwrites. */
static void
accumulate(const struct model *m, uint32_t n, bool first, float *const *gradients)
{
    int f = (int)m->n_features;

    cblas_sgemv(CblasRowMajor, CblasTrans, (int)n, f, 1.0f, m->x, f, m->z, 1, first ? 0.0f : 1.0f,
                gradients[KERNEL], 1);
    if (first)
        gradients[BIAS][0] = 0;
    for (uint32_t i = 0; i < n; i++)
        gradients[BIAS][0] += m->z[i];
}

static double
linear_gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
                const float *const *values, float *const *gradients)
{
    double loss = 0;

    for (uint32_t done = 0, part; done < n; done += part) {
        part = n - done < m->chunk ? n - done : m->chunk;
        model_gather(m, data, rows + done, part);
        predict(m, m->x, part, values);
        for (uint32_t i = 0; i < part; i++) {
            double e = (double)m->z[i] - (double)target(data, rows[done + i]);
            loss += e * e / 2;
            m->z[i] = (float)(e / n);
        }
        if (gradients)
            accumulate(m, part, done == 0, gradients);
    }
    return loss / n;
}

static double
linear_score(struct model *m, const struct dataset *data, uint64_t first, uint32_t n,
             const float *const *values, uint64_t *right)
{
    double loss = 0;

    (void)right;
    predict(m, data->x + first * m->n_features, n, values);
    for (uint32_t i = 0; i < n; i++) {
        double e = (double)m->z[i] - (double)target(data, first + i);
        loss += e * e / 2;
    }
    return loss;
}

const struct model_rule model_rule_linear = {
    .name = "linear",
    .needs_data = true,
    .numbers = true,
    .prepare = linear_prepare,
    .gradient = linear_gradient,
    .score = linear_score,
};
