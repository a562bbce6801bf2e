/*
 * staleness_json.h - counts of staleness as JSON: {"pushes", "mean", "p50", "p99", "max", "histogram": [...]}.
 */
#ifndef TRAIN_STALENESS_JSON_H
#define TRAIN_STALENESS_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "worker/train/staleness.h"

/* A new object; null where `s` is NULL. The histogram ends with its last bucket that is not zero. */
json_t *staleness_json(const struct staleness *s);
/* False, and all zero, when `o` is no such object. */
bool staleness_from_json(struct staleness *s, const json_t *o);

#endif
