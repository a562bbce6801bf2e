/*
 * psctl_set.h - psctl set: from KEY=VALUE to a request.
 */
#ifndef WORKER_CLI_PSCTL_SET_H
#define WORKER_CLI_PSCTL_SET_H

#include "proto/base/error.h"
#include "proto/wire/set.h"

/* "lr=0.01" with the options --variable (NULL: none) and --at-step (-1: none); the job is left empty. DT_E_USAGE. */
enum dt_status set_parse(const char *text, const char *variable, int64_t at_step,
                         struct dt_admin_set *out, struct dt_error *err);

#endif
