/*
 * curve.h - how a training went: its loss against seconds and samples, and when which accuracy was reached.
 *
 * Made of the lines that the workers report (metrics.h). A point is about the whole job: samples are the sum
 * over the workers, the loss is the mean of what each said last. Thread rule: one thread.
 */
#ifndef CLI_CURVE_H
#define CLI_CURVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CURVE_MAX_POINTS 2048u /* more are thinned out to every second one, and so on */

struct curve_point {
    double seconds; /* since the first values were there */
    double samples; /* of all workers */
    double loss;    /* over the training rows since the point before */
};

struct curve_record { /* no accuracy before was as high */
    double seconds;
    double accuracy; /* on the test rows */
};

struct curve_worker {
    double samples;
    double loss; /* NAN: none yet */
};

struct curve {                  /* zero-initialise */
    struct curve_point *points; /* owned */
    unsigned n_points;
    unsigned stride; /* every stride'th of those that came is kept */
    uint64_t n_seen;
    struct curve_record *records; /* owned; rising */
    unsigned n_records;
    struct curve_worker *workers; /* owned; by rank */
    unsigned n_workers;
    double seconds;
    bool failed; /* memory is short: what is there is not the whole */
};

void curve_add(struct curve *c, unsigned rank, const json_t *line);
/* The training ended with this accuracy (NAN: none). */
void curve_end(struct curve *c, double seconds, double accuracy);
/* When an accuracy of `target` was there; NAN: never. */
double curve_seconds_to(const struct curve *c, double target);
/* [[seconds, samples, loss], ...], a new array. */
json_t *curve_json(const struct curve *c);
void curve_deinit(struct curve *c);

#endif
