/*
 * phases_json.h - shares of time as JSON: {"compute", "push", "wait", "other"}.
 */
#ifndef TRAIN_PHASES_JSON_H
#define TRAIN_PHASES_JSON_H

#include <jansson.h>

#include "worker/train/phases.h"

/* A new object with the shares of `seconds`; null where nothing was measured. */
json_t *phases_json(const double seconds[N_PHASES]);
/* Seconds by phase of `sum` seconds in all; zeros when `o` is no such object. */
void phases_from_json(double seconds[N_PHASES], const json_t *o, double sum);

#endif
