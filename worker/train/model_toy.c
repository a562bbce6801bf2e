/*
 * model_toy.c - the Distributed TensorFlow guide's toy: a + b against 100, two elements each.
 *
 * loss = sum((a + b - 100)^2) / 2 over the elements; dL/da = dL/db = a + b - 100. No data: rows are
 * not looked at. Threads: those of model.c.
 */
#include "worker/train/model_rule.h"

#define TOY_ELEMENTS 2
#define TOY_TARGET 100.0f

static enum dt_status
toy_prepare(struct model *m, struct dt_error *err)
{
    uint64_t shape[1] = {TOY_ELEMENTS};

    (void)err;
    model_add_variable(m, "a", 1, shape, "zeros");
    model_add_variable(m, "b", 1, shape, "zeros");
    return DT_OK;
}

static double
toy_gradient(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n,
             const float *const *values, float *const *gradients)
{
    double loss = 0;

    (void)m;
    (void)data;
    (void)rows;
    (void)n;
    for (int i = 0; i < TOY_ELEMENTS; i++) {
        float d = values[0][i] + values[1][i] - TOY_TARGET;
        loss += (double)d * (double)d / 2;
        if (gradients)
            gradients[0][i] = gradients[1][i] = d;
    }
    return loss;
}

const struct model_rule model_rule_toy = {
    .name = "toy",
    .needs_data = false,
    .prepare = toy_prepare,
    .gradient = toy_gradient,
};
