/*
 * allocation.h - glibc's allocator, set up for frames of up to 1 MiB that come and go.
 *
 * libzmq allocates each frame that it receives. As glibc comes, each larger one is mapped, faulted in page by page
 * and unmapped again, which costs several times the copy. For programs alone: a library must not decide that.
 */
#ifndef DT_BASE_ALLOCATION_H
#define DT_BASE_ALLOCATION_H

#include <stdbool.h>

/* Freed memory up to 512 MiB is kept for the next frames. Before other threads start; false: glibc refused. */
bool dt_allocation_keep(void);

#endif
