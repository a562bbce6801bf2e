/*
 * near.h - which of the known names did somebody mean who wrote another one?
 */
#ifndef DT_BASE_NEAR_H
#define DT_BASE_NEAR_H

#include <stdbool.h>
#include <stddef.h>

#define DT_NEAR_NAME 64 /* longer names are near to nothing */

struct dt_near {
    const char *name; /* borrowed: what was written */
    size_t len, distance;
    bool found;
};

void dt_near_init(struct dt_near *n, const char *name);

/* True when `known` is nearer than all that were offered before, and near enough to be suggested. A name of
 * which `name` is the beginning is nearest. */
bool dt_near_offer(struct dt_near *n, const char *known);

#endif
