/*
 * extras.h - --lr-schedule, --warmup, --clip-value, --clip-norm and --weight-decay: from text to a training's extras.
 */
#ifndef CLI_EXTRAS_H
#define CLI_EXTRAS_H

#include "worker/cli/settings.h"
#include "worker/train/train_extras.h"

/* Part of row_check: a schedule that cannot be read, or what the row's rule refuses. DT_E_USAGE. */
enum dt_status settings_extras(const struct settings *s, struct train_extras *out,
                               struct dt_error *err);
enum dt_status extras_check(const struct settings *s, struct dt_error *err);

#endif
