/*
 * recorder.h - a link to psd that records each exchange (record.h). The loop's thread.
 */
#ifndef TRAIN_RECORDER_H
#define TRAIN_RECORDER_H

#include "worker/train/link.h"
#include "worker/train/record.h"

struct recorder; /* opaque */

/* DIR/rank-R.rec is made; `header` becomes its first frame. */
enum dt_status recorder_create(const char *dir, uint32_t rank, const char *header,
                               struct recorder **out, struct dt_error *err);
/* The link through `client` (borrowed), before the loop begins. */
struct link recorder_link(struct recorder *r, struct dtw_client *client);
/* After the loop: its final values; NULL: it was stopped within a window, nobody can say where. */
void recorder_end(struct recorder *r, const float *const *values);
/* NULL-safe; tells the first error of all writes. */
enum dt_status recorder_close(struct recorder *r, struct dt_error *err);

#endif
