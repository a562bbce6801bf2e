/*
 * pins.h - where variables of the model are held: --place NAME=TASK,..., and --partition.
 */
#ifndef CLI_PINS_H
#define CLI_PINS_H

#include "worker/cli/settings.h"
#include "worker/lib/dtworker.h"

/* --partition is one of the library. Each pin names a variable of the model and a ps task below `n_ps`, each variable once: else DT_E_USAGE. Wants
 * a --model that exists. `table`: of the command whose options `s` holds. */
enum dt_status pins_check(const struct settings *s, const struct dt_option *table, unsigned n_ps,
                          struct dt_error *err);
/* After pins_check, before the first declaration. */
enum dtw_status pins_apply(const struct settings *s, struct dtw_client *client,
                           struct dtw_error *err);

#endif
