/*
 * algorithm.c - the table of algorithms. Immutable; any thread.
 */
#include "worker/train/algorithm.h"

#include <stddef.h>
#include <string.h>

static const struct algorithm table[] = {
    {
        .name = "ssgd",
        .help = "synchronous SGD: a round averages one gradient of each worker",
        .consistency = CONSISTENCY_SYNC,
        .locking = LOCKING_SLICE,
        .window = 1,
        .reduction = REDUCTION_MEAN,
        .local_optimizer = NULL,
        .server_optimizer = "sgd",
        .exchange = EXCHANGE_GRADIENT,
    },
    {
        .name = "local",
        .help = "the baseline: SGD in one process, without psd",
        .consistency = CONSISTENCY_LOCAL,
        .locking = LOCKING_SLICE,
        .window = 1,
        .reduction = REDUCTION_MEAN,
        .local_optimizer = "sgd",
        .server_optimizer = NULL,
        .exchange = EXCHANGE_NONE,
    },
};
#define N_ALGORITHMS (sizeof(table) / sizeof(table[0]))

const struct algorithm *
algorithm_at(unsigned index)
{
    return index < N_ALGORITHMS ? &table[index] : NULL;
}

const struct algorithm *
algorithm_find(const char *name)
{
    for (size_t i = 0; i < N_ALGORITHMS; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}
