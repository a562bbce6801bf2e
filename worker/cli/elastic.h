/*
 * elastic.h - which options go with rows whose workers keep values of their own (worker/train/loop_elastic.c).
 */
#ifndef CLI_ELASTIC_H
#define CLI_ELASTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/cli/settings.h"

/* DT_E_USAGE with the reason. */
enum dt_status elastic_check(const struct settings *s, struct dt_error *err);

/* How often a worker meets the centre in `steps` batches. */
uint64_t elastic_meetings(const struct algorithm *row, uint64_t steps);
/* Why a run of so many steps teaches the centre nothing, or little: one line into `text`. False: it meets the centre
 * more than once, or the row is not elastic. */
bool elastic_is_short(const struct algorithm *row, uint64_t steps, char *text, size_t size);

#endif
