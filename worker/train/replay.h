/*
 * replay.h - repeats the exchanges of a recorded job bit for bit in one process.
 *
 * Each rank of the job is a loop of its own in a thread of its own, whose link (link.h) leads here instead of to psd.
 * The threads take turns, so nothing depends on their speed; the records say which version of each slice a pull took and
 * a push made, and that fixes the order of everything. What differs from a record is an error that names rank, exchange
 * and slice.
 */
#ifndef TRAIN_REPLAY_H
#define TRAIN_REPLAY_H

#include "worker/train/link.h"
#include "worker/train/record.h"

struct replay; /* opaque */

struct replay_counts {
    uint64_t exchanges; /* of all ranks */
    uint64_t pulls;     /* slices */
    uint64_t updates;   /* slices */
};

struct replay *replay_create(void);    /* NULL: memory is short */
void replay_destroy(struct replay *r); /* NULL-safe; its threads have ended */
/* Reads the whole of a rank's record to see that nothing is missing. *header: its text, to be freed. DT_E_NO_INPUT,
 * DT_E_DATA: damaged, cut, or what psd made of an exchange is not known. */
enum dt_status replay_add(struct replay *r, const char *path, uint32_t rank, char **header,
                          struct dt_error *err);
unsigned replay_n_ranks(const struct replay *r);
/* `threads`: of the BLAS library, while this rank computes. Before the first replay_enter. */
void replay_set_threads(struct replay *r, unsigned index, int threads);
/* False: the rank was stopped within a window; its final values cannot be repeated, what it pushed can. */
bool replay_has_final(const struct replay *r, unsigned index);
struct link replay_link(struct replay *r, unsigned index);

/* A rank's thread: waits for its turn; and has ended, with the final values of its loop (may be NULL). */
void replay_enter(struct replay *r, unsigned index);
void replay_leave(struct replay *r, unsigned index, const float *const *values);
/* After the threads have ended: the first thing that was not as recorded. DT_E_DATA. */
enum dt_status replay_result(const struct replay *r, struct dt_error *err);
void replay_count(const struct replay *r, struct replay_counts *out);

#endif
