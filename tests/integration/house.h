/*
 * house.h - a psd and its workers in one process, over real ipc sockets: the daemon's life cycle runs
 * in a thread and is stopped by its own signal.
 */
#ifndef TEST_HOUSE_H
#define TEST_HOUSE_H

#include "worker/lib/dtworker.h"

struct house {
    char dir[64];
    char endpoint[96];
    char shards[32];
    char window[32];
    const char *consistency; /* of the workers; NULL: sync */
    const char *locking;     /* likewise; NULL: slice */
    int64_t staleness_bound; /* likewise */
    int code;                /* of the daemon */
    unsigned long thread;
};

void house_open(struct house *h, unsigned n_shards, unsigned window);
void house_close(struct house *h); /* psd ends with 0 and nothing is left in the directory */

/* Options of a worker of this house. */
void house_options(struct house *h, struct dtw_options *o, unsigned rank, unsigned workers);
/* Open, declare n variables of `elements` each with sgd and lr 1, init with zeros; the first step. */
struct dtw_client *house_worker(struct house *h, unsigned rank, unsigned workers, unsigned n,
                                uint64_t elements, uint64_t *first_step);
/* Pull all into values and wait. */
void house_pull(struct dtw_client *c, float **values, uint64_t want);
/* n arrays of `elements`, all set to x. */
float **house_arrays(unsigned n, uint64_t elements, float x);
void house_arrays_free(float **arrays, unsigned n, uint64_t elements);

#endif
