/*
 * meter.h - bytes and messages that a peer has not taken yet. Shared (reference-counted) between a
 * session and libzmq's free callbacks.
 *
 * dt_meter_add: owner's thread, before a send. dt_meter_release: any thread (an I/O thread); when the
 * owner has set `waiting`, the first release clears it and writes wake_fd (an eventfd) once.
 */
#ifndef DT_BASE_METER_H
#define DT_BASE_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct dt_meter {
    atomic_int refs;
    atomic_size_t bytes;
    atomic_size_t messages;
    atomic_bool waiting;
    int wake_fd; /* borrowed; must outlive the meter; -1: none */
};

struct dt_meter *dt_meter_create(int wake_fd); /* one reference; NULL when memory is short */
struct dt_meter *dt_meter_ref(struct dt_meter *m);
void dt_meter_unref(struct dt_meter *m); /* NULL-safe */
void dt_meter_add(struct dt_meter *m, size_t bytes);
void dt_meter_release(struct dt_meter *m, size_t bytes);

#endif
