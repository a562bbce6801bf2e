/*
 * row.h - the row of the table of algorithms that is trained by: the named one, with what the command line
 * changes in it (window, reduction, optimizers), and the rate of each rank.
 */
#ifndef CLI_ROW_H
#define CLI_ROW_H

#include "worker/cli/settings.h"

/* Changes that make no sense in the row: DT_E_USAGE. After unused_check. */
enum dt_status row_check(const struct settings *s, struct dt_error *err);

/* After row_check. Its strings are those of `s` and of the table of algorithms. */
struct algorithm settings_row(const struct settings *s);
/* What this rank multiplies its gradient by: --lr-per-rank's value, or the row's rate / M (also for a rank >= M,
 * which has none there). 0: the row has no rates of ranks. */
double settings_rank_lr(const struct settings *s);

#endif
