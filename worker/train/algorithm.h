/*
 * algorithm.h - training algorithms are rows of one table; one loop (loop.h) drives all rows.
 *
 * A row says what a worker does between two exchanges with psd (window, local optimizer, reduction), what goes to
 * psd and when, and how psd takes it (consistency, locking, server optimizer). A name has one row for each published
 * variant (profile) that differs, the first of which is what the name alone means. ALGORITHMS sections 2 and 3.
 */
#ifndef TRAIN_ALGORITHM_H
#define TRAIN_ALGORITHM_H

#include <stdbool.h>

enum algorithm_consistency {
    CONSISTENCY_LOCAL, /* no psd: one process alone */
    CONSISTENCY_SYNC,  /* rounds of a quorum of the members */
    CONSISTENCY_ASYNC, /* each push is an update at its arrival */
    CONSISTENCY_SSP,   /* the same, and nobody is more than s steps ahead */
};

enum algorithm_locking {
    LOCKING_SLICE,    /* updates of a slice exclude each other */
    LOCKING_VARIABLE, /* updates of a variable exclude each other */
    LOCKING_NONE,     /* any thread of psd updates any slice; asynchronous only */
};

enum algorithm_reduction { /* over the gradients of a window */
                           REDUCTION_MEAN,
                           REDUCTION_SUM,
};

enum algorithm_exchange { /* what goes to psd at the end of a window */
                          EXCHANGE_NONE,
                          EXCHANGE_GRADIENT, /* the reduced gradient */
                          EXCHANGE_DELTA,    /* what the local steps changed: psd adds it */
                          EXCHANGE_ELASTIC,  /* alpha * (value - centre): psd adds it, the worker
                                             * takes it off its own values, which stay its own */
};

enum algorithm_order {               /* when the exchange comes */
                       ORDER_LAST,   /* after the T batches of a window */
                       ORDER_FIRST,  /* before each batch whose number, from 1, T divides: the first
                                     * window has T-1 batches, the others are as of ORDER_LAST */
                       ORDER_WITHIN, /* between gradient and update of a window's first batch */
};

enum algorithm_lookahead { /* the local rule is momentum with the gradient at a point ahead (lookahead.h) */
                           LOOKAHEAD_NONE,
                           LOOKAHEAD_FORWARD,
                           LOOKAHEAD_REVERSED, /* as in dist-keras */
};

/* Published variants, as bits: a row may be that of several. */
enum algorithm_profile {
    PROFILE_GUIDE = 1,      /* the Distributed TensorFlow guide's scripts */
    PROFILE_DIST_KERAS = 2, /* dist-keras' workers */
    PROFILE_PAPER = 4,      /* the papers of EASGD and DistBelief */
};
#define ALGORITHM_N_PROFILES 3

struct algorithm {
    const char *name;
    unsigned profiles; /* bits of enum algorithm_profile: which published variants this row is */
    const char *help;  /* one line */
    enum algorithm_consistency consistency;
    enum algorithm_locking locking;
    unsigned window; /* T: batches between two exchanges; --window */
    enum algorithm_reduction reduction;
    const char *local_optimizer;  /* NULL: values change by the exchange alone */
    const char *server_optimizer; /* NULL: no psd */
    enum algorithm_exchange exchange;
    enum algorithm_order order;
    enum algorithm_lookahead lookahead; /* instead of a local optimizer */
    double momentum;                    /* its default; --momentum */
    double alpha; /* EXCHANGE_ELASTIC: the default of --alpha; 0: alpha_share / M */
    double alpha_share;
    bool
        has_rank_rates; /* each worker multiplies its gradient by a rate of its own; psd sums, at rate 1. The
                          * default rate of a worker is then lr / M, so that their sum is lr */
    double
        lr; /* default of --lr: of the server's rule, or of the local one where it is the only one */
    double local_lr; /* default of --local-lr; 0: there is no local rule beside a server's */
};

const struct algorithm *algorithm_find(const char *name); /* NULL: unknown */
/* The row of that name and published variant; 0: what the name alone means. NULL: there is none. */
const struct algorithm *algorithm_find_profile(const char *name, unsigned profile);
/* The rows of all names alone, then those of further variants; NULL past the end of the former. */
const struct algorithm *algorithm_at(unsigned index);
const struct algorithm *algorithm_variant_at(unsigned index);
const char *algorithm_profile_name(unsigned profile); /* of one bit: "guide" */
static inline bool
algorithm_is_async(const struct algorithm *a) /* no rounds: pushes are applied when they come */
{
    return a->consistency == CONSISTENCY_ASYNC || a->consistency == CONSISTENCY_SSP;
}
static inline bool
algorithm_needs_ps(const struct algorithm *a)
{
    return a->consistency != CONSISTENCY_LOCAL;
}
/* Has psd's rule a rate? What is added as it is has none: the row's one rate is then that of its local steps. */
static inline bool
algorithm_has_server_rate(const struct algorithm *a)
{
    return a->exchange == EXCHANGE_GRADIENT;
}
static inline bool
algorithm_is_elastic(const struct algorithm *a)
{
    return a->exchange == EXCHANGE_ELASTIC;
}

#endif
