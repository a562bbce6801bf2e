/*
 * overlap.h - --overlap: the last gradient of a window goes to psd variable by variable while it is still being
 * computed, the last layer first, and the exchange is left open: its values come while the next gradient's forward
 * pass has begun with the first layer. Numbers are those of an exchange at once. Private to the loop files.
 *
 * An exchange is under way from overlap_start to overlap_finish; it is coming from overlap_leave_open to overlap_settle.
 * Thread rule: the loop's thread.
 */
#ifndef TRAIN_OVERLAP_H
#define TRAIN_OVERLAP_H

#include <stdbool.h>

#include "worker/lib/dtworker.h"

struct loop;
struct loop_batch;

/* The gradient of `step` is going to be computed; `is_last`: of its window. `batch` holds what came before it. */
void overlap_plan(struct loop *l, const struct loop_batch *batch, uint64_t step, bool is_last);
/* Begin the exchange if one was planned: the model's gradient then gives it what it needs. */
void overlap_start(struct loop *l);
/* Instead of dtw_step. */
enum dtw_status overlap_finish(struct loop *l, struct dtw_result *result);
/* Nothing is under way afterwards. */
void overlap_cancel(struct loop *l);

/* The window's gradients are given: may its exchange end in the next window's first gradient? */
bool overlap_leave_open(struct loop *l, const struct loop_batch *batch);
bool overlap_is_coming(const struct loop *l);
/* The step at which the loop is when what is coming has come. */
uint64_t overlap_step(const struct loop *l);
/* The values that are coming; NULL: none. */
const float *const *overlap_point(struct loop *l);
/* Blocks until those of the variable are whole. False: they are the last ones, or will not come; then settle. */
bool overlap_wait(struct loop *l, uint32_t variable);
/* What was coming is over: l->result.end says how the loop goes on. True: with the gradient that was begun. */
bool overlap_settle(struct loop *l);

#endif
