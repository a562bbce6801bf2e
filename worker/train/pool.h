/*
 * pool.h - a fixed number of threads that run the same function side by side, over and over.
 *
 * They are started once (all signals blocked, so that handlers run elsewhere), sleep between two runs and end
 * with the pool. Thread rule: one thread, which also does the work of index 0.
 */
#ifndef TRAIN_POOL_H
#define TRAIN_POOL_H

#include "proto/base/error.h"

struct pool; /* opaque */
typedef void pool_fn(void *arg, unsigned index);

/* For `n` >= 1 indices: n - 1 threads. DT_E_NO_MEMORY, DT_E_INTERNAL. */
enum dt_status pool_create(unsigned n, struct pool **out, struct dt_error *err);
void pool_destroy(struct pool *p); /* NULL-safe; ends the threads */
/* fn(arg, 0) here, fn(arg, 1) to fn(arg, n - 1) in the threads; returns when all are done. What was written
 * before is seen by all of them, and what they wrote by the caller. */
void pool_run(struct pool *p, pool_fn *fn, void *arg);

#endif
