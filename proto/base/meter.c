/*
 * meter.c - what a peer has not taken yet. Atomics; see the header for who may call what.
 */
#include "proto/base/meter.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct dt_meter *
dt_meter_create(int wake_fd)
{
    struct dt_meter *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    atomic_init(&m->refs, 1);
    m->wake_fd = wake_fd;
    return m;
}

struct dt_meter *
dt_meter_ref(struct dt_meter *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void
dt_meter_unref(struct dt_meter *m)
{
    if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
        free(m);
}

void
dt_meter_add(struct dt_meter *m, size_t bytes)
{
    atomic_fetch_add(&m->bytes, bytes);
    atomic_fetch_add(&m->messages, 1);
}

void
dt_meter_release(struct dt_meter *m, size_t bytes)
{
    uint64_t one = 1;

    atomic_fetch_sub(&m->bytes, bytes);
    atomic_fetch_sub(&m->messages, 1);
    if (m->wake_fd >= 0 && atomic_exchange(&m->waiting, false) &&
        write(m->wake_fd, &one, sizeof(one)) < 0) {
        /* the eventfd is full: its reader is awake anyway */
    }
}
