/*
 * algorithm.h - training algorithms are rows of one table; one loop (loop.h) drives all rows.
 *
 * A row says what a worker does between two exchanges with psd (window, local optimizer, reduction) and
 * how psd takes it (consistency, locking, server optimizer). ALGORITHMS sections 2 and 3.
 */
#ifndef TRAIN_ALGORITHM_H
#define TRAIN_ALGORITHM_H

#include <stdbool.h>

enum algorithm_consistency {
    CONSISTENCY_LOCAL, /* no psd: one process alone */
    CONSISTENCY_SYNC,  /* rounds of a quorum of the members */
    CONSISTENCY_ASYNC, /* each push is an update at its arrival */
};

enum algorithm_locking {
    LOCKING_SLICE, /* updates of a slice exclude each other */
    LOCKING_NONE,  /* any thread of psd updates any slice; asynchronous only */
};

enum algorithm_reduction { /* over the gradients of a window */
                           REDUCTION_MEAN,
                           REDUCTION_SUM,
};

enum algorithm_exchange { /* what goes to psd at the end of a window */
                          EXCHANGE_NONE,
                          EXCHANGE_GRADIENT,
};

struct algorithm {
    const char *name;
    const char *help; /* one line */
    enum algorithm_consistency consistency;
    enum algorithm_locking locking;
    unsigned window; /* T: batches between two exchanges; --window */
    enum algorithm_reduction reduction;
    const char *local_optimizer;  /* NULL: values change by the exchange alone */
    const char *server_optimizer; /* NULL: no psd */
    enum algorithm_exchange exchange;
    bool
        has_rank_rates; /* each worker multiplies its gradient by a rate of its own; psd sums, at rate 1. The
                          * default rate of a worker is then lr / M, so that their sum is lr */
    double lr;          /* default of --lr: of the server's rule (local: of the local one) */
    double local_lr; /* default of --local-lr; 0: there is no local rule beside a server's */
};

const struct algorithm *algorithm_find(const char *name); /* NULL: unknown */
const struct algorithm *algorithm_at(unsigned index);     /* NULL: past the end */
static inline bool
algorithm_needs_ps(const struct algorithm *a)
{
    return a->consistency != CONSISTENCY_LOCAL;
}

#endif
