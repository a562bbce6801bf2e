/*
 * unused.h - options that do nothing with the algorithm chosen: they are refused, whatever their value.
 */
#ifndef CLI_UNUSED_H
#define CLI_UNUSED_H

#include "worker/cli/settings.h"

/* DT_E_USAGE: the first option that was given and does nothing, with the reason. `table`: of the command whose
 * options `s` holds. The algorithm is known. */
enum dt_status unused_check(const struct settings *s, const struct dt_option *table,
                            struct dt_error *err);

#endif
