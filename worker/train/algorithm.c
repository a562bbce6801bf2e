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
        .window = 1,
        .server_optimizer = "sgd",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.1,
    },
    {
        .name = "ssgd-diff-lr",
        .help = "synchronous SGD with a rate of each worker: a round is w -= sum of lr_k * g_k",
        .consistency = CONSISTENCY_SYNC,
        .window = 1,
        .server_optimizer = "sgd",
        .exchange = EXCHANGE_GRADIENT,
        .has_rank_rates = true,
        .lr = 0.1,
    },
    {
        .name = "sagn",
        .help = "synchronous accumulated gradients: 5 local steps (adam), then a round with their "
                "mean (adam)",
        .consistency = CONSISTENCY_SYNC,
        .window = 5,
        .local_optimizer = "adam",
        .server_optimizer = "adam",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.004,
        .local_lr = 0.002,
    },
    {
        .name = "hogwild",
        .help =
            "asynchronous, without locks: each gradient is applied at once, by any thread of psd",
        .consistency = CONSISTENCY_ASYNC,
        .locking = LOCKING_NONE,
        .window = 1,
        .server_optimizer = "sgd",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.05,
    },
    {
        .name = "downpour",
        .help = "asynchronous: 3 local steps (adagrad), their sum is pushed (adagrad)",
        .consistency = CONSISTENCY_ASYNC,
        .window = 3,
        .reduction = REDUCTION_SUM,
        .local_optimizer = "adagrad",
        .server_optimizer = "adagrad",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.02,
        .local_lr = 0.02,
    },
    {
        .name = "downpour-easy",
        .help = "asynchronous: 3 local steps (sgd), their sum is pushed (adagrad)",
        .consistency = CONSISTENCY_ASYNC,
        .window = 3,
        .reduction = REDUCTION_SUM,
        .local_optimizer = "sgd",
        .server_optimizer = "adagrad",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.02,
        .local_lr = 0.05,
    },
    {
        .name = "agn",
        .help =
            "asynchronous accumulated gradients: 3 local steps (adam), their mean is pushed (adam)",
        .consistency = CONSISTENCY_ASYNC,
        .window = 3,
        .local_optimizer = "adam",
        .server_optimizer = "adam",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.002,
        .local_lr = 0.002,
    },
    {
        .name = "local",
        .help = "the baseline: SGD in one process, without psd",
        .consistency = CONSISTENCY_LOCAL,
        .window = 1,
        .local_optimizer = "sgd",
        .exchange = EXCHANGE_NONE,
        .lr = 0.1,
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
