/*
 * staleness.c - counts of staleness, their merge and what is read from them. Pure; any thread.
 */
#include "worker/train/staleness.h"

#include <math.h>

void
staleness_add(struct staleness *s, uint64_t value)
{
    s->histogram[value < STALENESS_EXACT ? value : STALENESS_EXACT]++;
    s->sum += (double)value;
    if (value > s->max)
        s->max = value;
}

void
staleness_merge(struct staleness *s, const struct staleness *from)
{
    for (unsigned i = 0; i < STALENESS_BUCKETS; i++)
        s->histogram[i] += from->histogram[i];
    s->sum += from->sum;
    if (from->max > s->max)
        s->max = from->max;
}

uint64_t
staleness_count(const struct staleness *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < STALENESS_BUCKETS; i++)
        n += s->histogram[i];
    return n;
}

double
staleness_mean(const struct staleness *s)
{
    uint64_t n = staleness_count(s);

    return n > 0 ? s->sum / (double)n : 0;
}

uint64_t
staleness_percentile(const struct staleness *s, double share)
{
    double rank = ceil(share * (double)staleness_count(s));
    uint64_t seen = 0;

    for (unsigned i = 0; i < STALENESS_EXACT; i++) {
        seen += s->histogram[i];
        if ((double)seen >= rank)
            return i;
    }
    return s->max;
}

unsigned
staleness_n_buckets(const struct staleness *s)
{
    unsigned n = STALENESS_BUCKETS;

    while (n > 0 && s->histogram[n - 1] == 0)
        n--;
    return n;
}
