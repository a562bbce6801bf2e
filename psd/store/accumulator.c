/*
 * accumulator.c - the weighted sum of an open round. Runs on the slice's home shard alone.
 */
#include "psd/store/accumulator.h"

#include <stdlib.h>
#include <string.h>

#include "psd/optim/kernels.h"

struct held { /* a gradient that waits for those of lower ranks */
    struct held *next;
    uint32_t rank;
    struct dt_block *gradient; /* owned; as it came */
    float factor;
};

static void
drop_first(struct accumulator *a)
{
    struct held *h = a->held;

    a->held = h->next;
    dt_block_unref(h->gradient);
    free(h);
}

void
accumulator_reset(struct accumulator *a)
{
    while (a->held)
        drop_first(a);
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

static float
factor_of(enum dt_reduce reduce, uint64_t weight, uint32_t count)
{
    return reduce == DT_REDUCE_MEAN ? (float)weight : (float)count;
}

bool
accumulator_add(struct accumulator *a, struct dt_pool *pool, enum dt_reduce reduce, const void *g,
                uint32_t n, uint64_t weight, uint32_t count, int64_t now_ms)
{
    float factor = factor_of(reduce, weight, count);

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

static struct held *
copy(struct dt_pool *pool, uint32_t rank, float factor, const void *g, uint32_t n)
{
    struct held *h = malloc(sizeof(*h));

    if (!h)
        return NULL;
    *h = (struct held){NULL, rank, dt_block_create(pool, n * sizeof(float)), factor};
    if (!h->gradient) {
        free(h);
        return NULL;
    }
    memcpy(h->gradient->data, g, n * sizeof(float));
    return h;
}

bool
accumulator_hold(struct accumulator *a, struct dt_pool *pool, enum dt_reduce reduce, uint32_t rank,
                 const void *g, uint32_t n, uint64_t weight, uint32_t count, int64_t now_ms)
{
    float factor = factor_of(reduce, weight, count);
    struct held **at = &a->held, *h;

    if (g && factor > 0) {
        h = copy(pool, rank, factor, g, n);
        if (!h)
            return false;
        while (*at && (*at)->rank < rank)
            at = &(*at)->next;
        h->next = *at;
        *at = h;
    }
    note(a, weight, count, now_ms);
    return true;
}

/* The first one's block becomes the sum. */
void
accumulator_release(struct accumulator *a, uint32_t n, uint32_t below)
{
    while (a->held && a->held->rank < below) {
        struct held *h = a->held;

        if (a->sum) {
            kernel_axpy(a->sum->data, h->gradient->data, h->factor, n);
        } else {
            a->sum = dt_block_ref(h->gradient);
            kernel_scale(a->sum->data, a->sum->data, h->factor, n);
        }
        drop_first(a);
    }
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
