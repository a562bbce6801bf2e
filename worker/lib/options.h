/*
 * options.h - from struct dtw_options to a client's settings. Private.
 */
#ifndef WORKER_LIB_OPTIONS_H
#define WORKER_LIB_OPTIONS_H

#include "worker/lib/client.h"

/* Checks everything that needs no server (endpoints resolve, limits) and fills the settings. */
enum dtw_status options_apply(const struct dtw_options *given, struct dtw_client *client,
                              struct dtw_error *err);

#endif
