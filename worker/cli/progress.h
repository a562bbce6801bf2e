/*
 * progress.h - how far the training is, for people: one living line on a terminal (at most five times a
 * second), and one plain line at each epoch end. Thread rule: progress_clear from any thread, the rest from one.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdio.h>

#include "worker/train/loop.h"

struct progress {
    FILE *out;              /* borrowed */
    bool live;              /* a terminal */
    uint64_t rows_per_step; /* of all workers together, for the rate */
    uint64_t first_step;
    uint64_t steps_per_epoch;
    uint64_t epochs; /* in all; the last may be short */
    int64_t next_ms;
    bool open; /* the living line is on the screen */
    bool started;
};

void progress_init(struct progress *p, FILE *out, uint64_t rows_per_step, uint64_t steps,
                   uint64_t steps_per_epoch);
void progress_point(struct progress *p, const struct loop_point *point);
/* Take the living line away, so that another line can be written. */
void progress_clear(struct progress *p);

#endif
