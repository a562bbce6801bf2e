/*
 * order.c - which rows a rank reads in a step.
 *
 * Invariant: the parts of the ranks 0..M-1 partition every epoch. Threads: pure, any.
 */
#include "worker/train/order.h"

#include "worker/train/permutation.h"

struct part { /* of the permutation of an epoch */
    uint64_t epoch;
    uint64_t first;
    uint32_t n;
};

static uint64_t
global_batch(const struct order *o)
{
    return (uint64_t)o->workers * o->batch;
}

uint64_t
order_steps_per_epoch(const struct order *o)
{
    uint64_t g = global_batch(o);

    if (g == 0)
        return 0;
    return o->n_rows / g + (o->n_rows % g != 0);
}

/* The part of `rank` < M. A full batch is the case m = M*B of the general split. */
static struct part
part_of(const struct order *o, uint64_t step, uint32_t rank)
{
    uint64_t steps = order_steps_per_epoch(o);
    struct part p = {0};

    if (steps == 0)
        return p;
    uint64_t start = step % steps * global_batch(o);
    uint64_t left = o->n_rows - start;
    uint64_t m = left < global_batch(o) ? left : global_batch(o);
    uint64_t base = m / o->workers;
    uint64_t extra = m % o->workers;
    p.epoch = step / steps;
    p.first = start + rank * base + (rank < extra ? rank : extra);
    p.n = (uint32_t)(base + (rank < extra));
    return p;
}

static uint32_t
late_rows(const struct order *o, uint64_t step, uint32_t rank, uint64_t *rows)
{
    uint64_t position = step * o->batch;
    uint64_t epoch = position / o->n_rows;
    uint64_t i = position % o->n_rows;
    struct permutation p;

    permutation_init(&p, o->n_rows, o->seed, PHILOX_LATE_ORDER, rank, epoch);
    for (uint32_t k = 0; k < o->batch; k++, i++) {
        if (i == o->n_rows) {
            i = 0;
            permutation_init(&p, o->n_rows, o->seed, PHILOX_LATE_ORDER, rank, ++epoch);
        }
        rows[k] = permutation_at(&p, i);
    }
    return o->batch;
}

uint32_t
order_count(const struct order *o, uint64_t step, uint32_t rank)
{
    if (o->n_rows == 0)
        return 0;
    return rank < o->workers ? part_of(o, step, rank).n : o->batch;
}

uint32_t
order_rows(const struct order *o, uint64_t step, uint32_t rank, uint64_t *rows)
{
    struct permutation p;

    if (o->n_rows == 0)
        return 0;
    if (rank >= o->workers)
        return late_rows(o, step, rank, rows);

    struct part part = part_of(o, step, rank);
    permutation_init(&p, o->n_rows, o->seed, PHILOX_ORDER, 0, part.epoch);
    for (uint32_t k = 0; k < part.n; k++)
        rows[k] = permutation_at(&p, part.first + k);
    return part.n;
}

uint64_t
order_permute(const struct order *o, uint64_t epoch, uint64_t i)
{
    struct permutation p;

    permutation_init(&p, o->n_rows, o->seed, PHILOX_ORDER, 0, epoch);
    return permutation_at(&p, i);
}

uint32_t
order_parts(uint32_t aggregate, uint32_t workers)
{
    return aggregate > workers ? aggregate : workers;
}

struct order_share
order_share(uint32_t aggregate, uint32_t workers, uint32_t rank)
{
    uint32_t parts = order_parts(aggregate, workers);

    if (rank >= workers || parts == workers)
        return (struct order_share){rank < workers ? rank : parts + (rank - workers), 1};
    uint32_t base = parts / workers, extra = parts % workers;
    return (struct order_share){rank * base + (rank < extra ? rank : extra), base + (rank < extra)};
}
