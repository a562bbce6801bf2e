/*
 * model_output.c - softmax output: cross entropy of one row of logits and its gradient.
 *
 * loss = log(sum_j exp(z_j)) - z_y, dL/dz = softmax(z) - onehot(y). The largest logit is taken out
 * before exp, so nothing overflows; sums of exponentials are in double. Threads: pure, any.
 */
#include "worker/train/model_rule.h"

#include <math.h>

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

/* A label that the model does not have can only be lost: infinite. */
double
model_row_loss(const float *z, uint32_t n_classes, uint32_t label, double *lse)
{
    *lse = log_sum_exp(z, n_classes);
    return label < n_classes ? *lse - (double)z[label] : INFINITY;
}

void
model_row_gradient(float *z, uint32_t n_classes, uint32_t label, double lse, double scale)
{
    for (uint32_t j = 0; j < n_classes; j++)
        z[j] = (float)((exp((double)z[j] - lse) - (j == label ? 1.0 : 0.0)) * scale);
}

/* The first of the largest logits. */
uint32_t
model_row_answer(const float *z, uint32_t n_classes)
{
    uint32_t best = 0;

    for (uint32_t j = 1; j < n_classes; j++) {
        if (z[j] > z[best])
            best = j;
    }
    return best;
}
