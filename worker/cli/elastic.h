/*
 * elastic.h - which options go with rows whose workers keep values of their own (worker/train/loop_elastic.c).
 */
#ifndef CLI_ELASTIC_H
#define CLI_ELASTIC_H

#include "worker/cli/settings.h"

/* DT_E_USAGE with the reason. `table`: of the command whose options `s` holds. */
enum dt_status elastic_check(const struct settings *s, const struct dt_option *table,
                             struct dt_error *err);

#endif
