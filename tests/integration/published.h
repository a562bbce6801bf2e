/*
 * published.h - the loops of dist-keras, the Distributed TensorFlow guide and the EASGD paper, written down as they
 * were published, in double precision: two workers on f = (w - target)^2 / 2, for t = 1, 2, ...: worker 0 runs its
 * whole iteration t, then worker 1.
 */
#ifndef TEST_PUBLISHED_H
#define TEST_PUBLISHED_H

struct trace {
    double targets[2]; /* of each worker */
    double lr, alpha, mu;
    unsigned window; /* T */
};

/* The centre after each of n commits. */
typedef void published_fn(const struct trace *t, unsigned n, double *centre);

published_fn published_downpour;       /* dist-keras */
published_fn published_guide_downpour; /* with an sgd server */
published_fn published_adag;
published_fn published_dynsgd;
published_fn published_aeasgd;            /* dist-keras */
published_fn published_dist_keras_eamsgd; /* the rate twice, the look-ahead reversed */
published_fn published_easgd;             /* the paper, asynchronous */
published_fn published_eamsgd;            /* the paper */
published_fn published_easgd_rounds;      /* the paper, synchronous; a commit is a round of both */

#endif
