/*
 * clock.c - the bound of ssp, slice by slice. Runs on the slice's home shard; clock_of_joiner on shard 0.
 */
#include "psd/store/clock.h"

static uint64_t
bound_of(const struct job *job)
{
    return atomic_load_explicit(&job->shared->staleness_bound, memory_order_relaxed);
}

/* Of a member. A row of an earlier life was cleared when this one joined. */
static uint64_t
clock_of(const struct slice *s, const struct job *job, uint32_t rank)
{
    uint64_t first = job->membership.ranks[rank].first;
    uint64_t clock = rank < s->n_rows ? s->rows[rank].clock : 0;

    return clock > first ? clock : first;
}

bool
clock_raise(struct slice *s, struct job *job, uint32_t rank, uint64_t clock)
{
    struct push_row *row = slice_require_row(s, rank);

    if (!row)
        return false;
    if (clock > row->clock)
        row->clock = clock;
    job_shared_raise_clock(job->shared, rank, clock);
    return true;
}

void
clock_restart(struct slice *s, uint32_t rank)
{
    if (rank < s->n_rows)
        s->rows[rank].clock = 0;
}

uint32_t
clock_missing(const struct slice *s, const struct job *job, uint32_t rank, uint64_t clock,
              uint64_t *awaited, uint32_t *ranks, uint32_t max)
{
    uint64_t bound = bound_of(job);
    uint32_t r, n = 0;

    *awaited = clock > bound ? clock - bound : 0;
    for (r = 0; r < job->membership.n; r++) {
        if (r == rank || !membership_is_active(&job->membership, r) ||
            clock_of(s, job, r) >= *awaited)
            continue;
        if (n < max)
            ranks[n] = r;
        n++;
    }
    return n;
}

bool
clock_allows(const struct slice *s, const struct job *job, uint32_t rank, uint64_t clock)
{
    uint64_t awaited;

    return clock_missing(s, job, rank, clock, &awaited, NULL, 0) == 0;
}

uint64_t
clock_of_joiner(const struct job *job, uint32_t rank)
{
    uint64_t least = DT_MAX_CLOCK;
    uint32_t r;

    for (r = 0; r < job->membership.n; r++) {
        uint64_t first = job->membership.ranks[r].first;
        uint64_t clock = atomic_load(&job->shared->clocks[r]);

        if (r == rank || !membership_is_active(&job->membership, r))
            continue;
        clock = clock > first ? clock : first;
        least = clock < least ? clock : least;
    }
    if (least < DT_MAX_CLOCK)
        return least;
    least = atomic_load(&job->shared->clocks[rank]);
    return least < DT_MAX_CLOCK ? least : 0;
}
