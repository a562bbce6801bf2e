/*
 * metrics.h - JSON lines about a training: {step, epoch, loss, mean_loss, accuracy, seconds, samples,
 * samples_per_second, time, stale, partial, staleness}. mean_loss is over the steps since the line before. One at each epoch end and at most one in `interval_ms` between; each line is flushed.
 * What is not known is null; staleness (staleness_json.h) counts from the start, and is null but in asynchronous jobs. Thread rule: one thread.
 */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H

#include "worker/train/loop.h"

struct metrics;

/* Replaces the file with the first line; without a line nothing has changed at `path` once it is closed. DT_E_CANT_CREATE, DT_E_NO_MEMORY. */
enum dt_status metrics_open(const char *path, int64_t interval_ms, struct metrics **out,
                            struct dt_error *err);
/* Writes to a descriptor, which metrics_close closes. */
enum dt_status metrics_open_fd(int fd, int64_t interval_ms, struct metrics **out,
                               struct dt_error *err);
/* `last`: write it whatever the time is. NULL-safe. */
void metrics_point(struct metrics *m, const struct loop_point *point, bool last);
/* DT_E_IO when a line could not be written. NULL-safe. */
enum dt_status metrics_close(struct metrics *m, struct dt_error *err);

#endif
