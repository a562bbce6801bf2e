/*
 * clock.h - ssp: clocks of workers as a slice knows them, and who may pull (ALGORITHMS section 4).
 *
 * A rank's clock is the number of steps that it has finished. It rides on the rank's pushes, so a slice knows a
 * clock only after the updates that it stands for: what a pull gets holds all updates up to clock c - s - 1 of every
 * worker, on any number of shards and ps tasks, without a word between them.
 *
 * Thread rule: the slice's shard alone.
 */
#ifndef PSD_STORE_CLOCK_H
#define PSD_STORE_CLOCK_H

#include "psd/store/job.h"

/* The rank, an active worker, has finished so many steps: raises only. False when memory is short. */
bool clock_raise(struct slice *slice, struct job *job, uint32_t rank, uint64_t clock);
/* A new life of the rank starts at the first step of its membership. */
void clock_restart(struct slice *slice, uint32_t rank);
/* May `rank` at `clock` be answered: has every other active worker reached clock - s here? */
bool clock_allows(const struct slice *slice, const struct job *job, uint32_t rank, uint64_t clock);
/* The clock that it waits for, and the ranks that have not reached it: at most `max` into ranks; returns how many in
 * all. */
uint32_t clock_missing(const struct slice *slice, const struct job *job, uint32_t rank,
                       uint64_t clock, uint64_t *awaited, uint32_t *ranks, uint32_t max);
/* Where `rank` starts when it joins: the least clock of the other active workers, of those that go on; without one
 * its own last. Shard 0's membership; any thread's clocks. */
uint64_t clock_of_joiner(const struct job *job, uint32_t rank);

#endif
