/*
 * algorithm.c - the table of algorithms. Immutable; any thread.
 */
#include "worker/train/algorithm.h"

#include <stddef.h>
#include <string.h>

static const struct algorithm table[] = {
    {
        .name = "ssgd",
        .profiles = PROFILE_GUIDE,
        .help = "synchronous SGD: a round averages one gradient of each worker",
        .consistency = CONSISTENCY_SYNC,
        .window = 1,
        .server_optimizer = "sgd",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.1,
    },
    {
        .name = "ssgd-diff-lr",
        .profiles = PROFILE_GUIDE,
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
        .profiles = PROFILE_GUIDE,
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
        .profiles = PROFILE_GUIDE,
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
        .profiles = PROFILE_GUIDE,
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
        .profiles = PROFILE_GUIDE,
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
        .profiles = PROFILE_GUIDE,
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
        .name = "dynsgd",
        .profiles = PROFILE_DIST_KERAS,
        .help = "asynchronous: the change of 5 local steps (sgd) is added, divided by its "
                "staleness + 1",
        .consistency = CONSISTENCY_ASYNC,
        .window = 5,
        .reduction = REDUCTION_SUM,
        .local_optimizer = "sgd",
        .server_optimizer = "add-damped",
        .exchange = EXCHANGE_DELTA,
        .lr = 0.05,
    },
    {
        .name = "easgd",
        .profiles = PROFILE_PAPER,
        .help = "synchronous elastic averaging: workers keep values of their own (sgd), drawn to "
                "a centre",
        .consistency = CONSISTENCY_SYNC,
        .window = 1,
        .local_optimizer = "sgd",
        .server_optimizer = "add",
        .exchange = EXCHANGE_ELASTIC,
        .order = ORDER_WITHIN,
        .alpha_share = 0.9,
        .lr = 0.1,
    },
    {
        .name = "aeasgd",
        .profiles = PROFILE_PAPER,
        .help = "asynchronous elastic averaging: each worker meets the centre every 10 batches "
                "(sgd)",
        .consistency = CONSISTENCY_ASYNC,
        .window = 10,
        .local_optimizer = "sgd",
        .server_optimizer = "add",
        .exchange = EXCHANGE_ELASTIC,
        .order = ORDER_WITHIN,
        .alpha_share = 0.9,
        .lr = 0.1,
    },
    {
        .name = "eamsgd",
        .profiles = PROFILE_PAPER,
        .help = "aeasgd with momentum: the gradient is taken at the point ahead",
        .consistency = CONSISTENCY_ASYNC,
        .window = 10,
        .server_optimizer = "add",
        .exchange = EXCHANGE_ELASTIC,
        .order = ORDER_WITHIN,
        .lookahead = LOOKAHEAD_FORWARD,
        .momentum = 0.9,
        .alpha_share = 0.9,
        .lr = 0.02,
    },
    {
        .name = "ssp",
        .help = "stale synchronous parallel: each gradient is applied at once, and nobody is more "
                "than --staleness-bound steps ahead",
        .consistency = CONSISTENCY_SSP,
        .window = 1,
        .server_optimizer = "sgd",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.05,
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

/* Published variants that differ from what their name alone means. */
static const struct algorithm variants[] = {
    {
        .name = "downpour",
        .profiles = PROFILE_DIST_KERAS,
        .help = "the change of 5 local steps (sgd) is added; exchange before a batch",
        .consistency = CONSISTENCY_ASYNC,
        .window = 5,
        .reduction = REDUCTION_SUM,
        .local_optimizer = "sgd",
        .server_optimizer = "add",
        .exchange = EXCHANGE_DELTA,
        .order = ORDER_FIRST,
        .lr = 0.05,
    },
    {
        .name = "downpour",
        .profiles = PROFILE_PAPER,
        .help = "each gradient is pushed (adagrad), then pulled: n_fetch = n_push = 1",
        .consistency = CONSISTENCY_ASYNC,
        .window = 1,
        .reduction = REDUCTION_SUM,
        .server_optimizer = "adagrad",
        .exchange = EXCHANGE_GRADIENT,
        .lr = 0.02,
    },
    {
        .name = "agn",
        .profiles = PROFILE_DIST_KERAS,
        .help = "ADAG: the change of 12 local steps (sgd), divided by 12, is added",
        .consistency = CONSISTENCY_ASYNC,
        .window = 12,
        .local_optimizer = "sgd",
        .server_optimizer = "add",
        .exchange = EXCHANGE_DELTA,
        .lr = 0.2,
    },
    {
        .name = "aeasgd",
        .profiles = PROFILE_DIST_KERAS,
        .help = "pull, elastic move, then a batch; every 32 batches",
        .consistency = CONSISTENCY_ASYNC,
        .window = 32,
        .local_optimizer = "sgd",
        .server_optimizer = "add",
        .exchange = EXCHANGE_ELASTIC,
        .order = ORDER_FIRST,
        .alpha = 0.5,
        .lr = 0.1,
    },
    {
        .name = "eamsgd",
        .profiles = PROFILE_DIST_KERAS,
        .help = "as its aeasgd, with a reversed look-ahead and the rate applied twice",
        .consistency = CONSISTENCY_ASYNC,
        .window = 32,
        .server_optimizer = "add",
        .exchange = EXCHANGE_ELASTIC,
        .order = ORDER_FIRST,
        .lookahead = LOOKAHEAD_REVERSED,
        .momentum = 0.9,
        .alpha = 0.5,
        .lr = 0.1,
    },
};
#define N_VARIANTS (sizeof(variants) / sizeof(variants[0]))

static const char *const profile_names[ALGORITHM_N_PROFILES] = {"guide", "dist-keras", "paper"};

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

const struct algorithm *
algorithm_variant_at(unsigned index)
{
    return index < N_VARIANTS ? &variants[index] : NULL;
}

const struct algorithm *
algorithm_find_profile(const char *name, unsigned profile)
{
    const struct algorithm *a = algorithm_find(name);

    if (!a || profile == 0 || a->profiles & profile)
        return a;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        if (variants[i].profiles & profile && strcmp(variants[i].name, name) == 0)
            return &variants[i];
    }
    return NULL;
}

const char *
algorithm_profile_name(unsigned profile)
{
    for (unsigned i = 0; i < ALGORITHM_N_PROFILES; i++) {
        if (profile == 1u << i)
            return profile_names[i];
    }
    return "";
}
