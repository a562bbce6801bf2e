/*
 * model_init.c - initial values: a pure function of (seed, variable index, element position).
 *
 *   zeros  0
 *   he     uniform in (-l, l), l = sqrt(6 / inputs), which has He's variance 2 / inputs (He et al.
 *          2015, arXiv 1502.01852, equation 10). Uniform, not normal: it takes one square root and
 *          products alone, so every machine computes the same bits.
 *
 * Invariant: the values never change (a test holds golden ones). Threads: any; nothing is shared.
 */
#include "worker/train/model_rule.h"

#include <math.h>
#include <string.h>

#include "worker/train/philox.h"

/* An odd number in (-2^24, 2^24): symmetric, never 0, exact in float32. */
static int32_t
symmetric(uint32_t word)
{
    return (int32_t)(word >> 8) * 2 + 1 - (1 << 24);
}

static void
fill_he(const struct model *m, uint32_t index, float *values)
{
    const struct model_variable *v = &m->variables[index];
    const double unit = sqrt(6.0 / (double)v->shape[0]) / (1 << 24);
    struct philox_block b = {{0}};

    for (uint64_t i = 0; i < v->elements; i++) {
        if (i % 4 == 0)
            b = philox(m->seed, PHILOX_INIT, 0, index, i / 4);
        values[i] = (float)(symmetric(b.v[i % 4]) * unit);
    }
}

void
model_init(const struct model *m, uint32_t index, float *values)
{
    const struct model_variable *v = model_variable(m, index);

    if (!v)
        return;
    if (strcmp(v->init, "he") == 0)
        fill_he(m, index, values);
    else
        memset(values, 0, v->elements * sizeof(*values));
}
