/*
 * report.h - what a training came to: for people, or as the one JSON object of --json.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/error.h"
#include "worker/train/phases.h"
#include "worker/train/staleness.h"

struct report {
    const char *algorithm; /* borrowed */
    const char *model;     /* borrowed */
    uint64_t workers;
    uint64_t ps_tasks;
    int64_t rank;            /* -1: all workers (run) */
    uint64_t rows;           /* in the training set */
    uint64_t batch;          /* a worker, replica and step */
    uint64_t replicas;       /* a worker */
    uint64_t steps;          /* of the job, as far as it went */
    uint64_t samples;        /* rows pushed */
    double seconds;          /* of the training loop */
    double phases[N_PHASES]; /* where they went; run: the sum over the workers */
    double train_loss;       /* over all training rows at the final values; NAN: not known */
    double test_loss;
    double test_accuracy;
    uint64_t stale_dropped; /* pushes dropped whole, told to this worker (run: to all of them) */
    uint64_t partial;       /* pushes taken in part */
    uint64_t unseen_rows;
    uint64_t lives_lost;
    bool interrupted;
    bool counted; /* psd answered: */
    uint64_t rounds;
    uint64_t ps_stale; /* as psd counts: slices */
    uint64_t ps_partial;
    uint64_t pushed_bytes; /* payload of all workers' pushes and pulls */
    uint64_t pulled_bytes;
    bool has_staleness; /* asynchronous jobs only */
    struct staleness staleness;
    json_t *workers_detail; /* borrowed; run: one object a worker; NULL: none */
};

json_t *report_json(const struct report *r); /* a new object; NULL when memory is short */
/* Fields that `o` does not hold become 0, NAN or "". Strings are borrowed from `o`. */
void report_from_json(struct report *r, const json_t *o);
/* One line. DT_E_IO. */
enum dt_status report_write_json(const struct report *r, FILE *out, struct dt_error *err);
void report_write_text(const struct report *r, FILE *out);

#endif
