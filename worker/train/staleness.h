/*
 * staleness.h - how stale the pushes of an asynchronous worker were: updates of others between its pull and
 * its push (the most over the slices), counted by value.
 *
 * 0 to 63 are counted exactly; what is more shares one bucket, of which the largest is kept. A percentile is the
 * nearest rank: the least value that a share of the pushes does not pass. Pure; any thread.
 */
#ifndef TRAIN_STALENESS_H
#define TRAIN_STALENESS_H

#include <stdint.h>

#define STALENESS_EXACT 64u /* the overflow bucket's index */
#define STALENESS_BUCKETS (STALENESS_EXACT + 1)

struct staleness { /* zero-initialise */
    uint64_t histogram
        [STALENESS_BUCKETS]; /* [s]: pushes of staleness s; the last: of STALENESS_EXACT or more */
    double sum;              /* over all pushes */
    uint64_t max;
};

void staleness_add(struct staleness *s, uint64_t value);
/* Add the pushes of `from`. */
void staleness_merge(struct staleness *s, const struct staleness *from);

uint64_t staleness_count(const struct staleness *s);
double staleness_mean(const struct staleness *s); /* 0 without a push */
/* `share` in (0, 1]; a percentile in the overflow bucket is given as the maximum. 0 without a push. */
uint64_t staleness_percentile(const struct staleness *s, double share);
/* Buckets up to the last that is not zero. */
unsigned staleness_n_buckets(const struct staleness *s);

#endif
