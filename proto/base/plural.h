/*
 * plural.h - for messages with a number: "1 job", "2 jobs".
 */
#ifndef DT_BASE_PLURAL_H
#define DT_BASE_PLURAL_H

#include <stdint.h>

/* What the noun behind `n` ends with. */
static inline const char *
dt_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
