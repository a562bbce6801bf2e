/*
 * accumulator.c - the weighted sum of an open round. Runs on the slice's home shard alone.
 */
#include "psd/store/accumulator.h"

#include <string.h>

#include "psd/optim/kernels.h"

void
accumulator_reset(struct accumulator *a)
{
    dt_block_unref(a->sum);
    memset(a, 0, sizeof(*a));
}

static void
note(struct accumulator *a, uint64_t weight, uint32_t count, int64_t now_ms)
{
    if (a->n_pushed++ == 0)
        a->opened_ms = now_ms;
    a->weight += weight;
    a->count += count;
}

bool
accumulator_add(struct accumulator *a, struct dt_pool *pool, enum dt_reduce reduce, const void *g,
                uint32_t n, uint64_t weight, uint32_t count, int64_t now_ms)
{
    float factor = reduce == DT_REDUCE_MEAN ? (float)weight : (float)count;

    if (g && factor > 0) {
        if (a->sum) {
            kernel_axpy(a->sum->data, g, factor, n);
        } else {
            a->sum = dt_block_create(pool, n * sizeof(float));
            if (!a->sum)
                return false;
            kernel_scale(a->sum->data, g, factor, n);
        }
    }
    note(a, weight, count, now_ms);
    return true;
}

bool
accumulator_reduce(struct accumulator *a, enum dt_reduce reduce, uint32_t n)
{
    uint64_t divisor = reduce == DT_REDUCE_MEAN ? a->weight : a->count;

    if (!a->sum || divisor == 0)
        return false;
    if (reduce != DT_REDUCE_SUM && divisor > 1)
        kernel_divide(a->sum->data, (float)divisor, n);
    return true;
}
