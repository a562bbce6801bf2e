/*
 * overlap.h - --overlap: the last gradient of a window goes to psd variable by variable while it is still being
 * computed, the last layer first. Numbers are those of an exchange at once. Private to the loop files.
 *
 * Thread rule: the loop's thread.
 */
#ifndef TRAIN_OVERLAP_H
#define TRAIN_OVERLAP_H

#include <stdbool.h>

#include "worker/lib/dtworker.h"

struct loop;
struct loop_batch;

/* Before the last gradient of a window, which is that of `step`; `batch` holds what came before. Returns whether
 * the exchange is under way: then the model's gradient gives it what it needs. */
bool overlap_begin(struct loop *l, const struct loop_batch *batch, uint64_t step);
/* Instead of dtw_step. */
enum dtw_status overlap_finish(struct loop *l, struct dtw_result *result);
/* Nothing is under way afterwards. */
void overlap_cancel(struct loop *l);

#endif
