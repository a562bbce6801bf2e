/*
 * allocation.c - mallopt in one place. Main thread, before others start.
 *
 * glibc takes no M_MMAP_THRESHOLD above half of a heap (32 MiB), and with any of these set it no longer adapts by
 * itself: one refused would leave all frames to be mapped and unmapped.
 */
#include "proto/base/allocation.h"

#include <malloc.h>

bool
dt_allocation_keep(void)
{
    return mallopt(M_MMAP_THRESHOLD, 16 << 20) && mallopt(M_TRIM_THRESHOLD, 512 << 20) &&
           mallopt(M_TOP_PAD, 16 << 20);
}
