/*
 * finite.h - are all of these numbers finite? Asked by both ends of each push.
 */
#ifndef DT_BASE_FINITE_H
#define DT_BASE_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* No NaN and no Inf among the n float32 at g, which may be unaligned. Pure; any thread. */
bool dt_is_finite(const void *g, size_t n);
/* The largest magnitude among them, 0 where n is 0; Inf or NaN where there is one. Pure; any thread. */
float dt_largest(const void *g, size_t n);

#endif
