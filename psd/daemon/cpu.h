/*
 * cpu.h - the processor time of psd's threads, libzmq's I/O threads too; for ADMIN_STATUS.
 *
 * Read when it is asked for, never else. Thread rule: initialised before the threads run, then shard 0's
 * thread alone.
 */
#ifndef PSD_DAEMON_CPU_H
#define PSD_DAEMON_CPU_H

#include <stdint.h>

#include "proto/base/buffer.h"

#define CPU_MAX_THREADS 160 /* 64 shards, 64 I/O threads, and some */

struct cpu_reading {
    int64_t ms; /* when */
    unsigned n;
    struct cpu_thread {
        char name[16]; /* "shard 0", "io 0"; what else there is: "other", together, in the end */
        double seconds;
    } threads[CPU_MAX_THREADS];
};

struct cpu {
    int64_t start_ms;
    struct cpu_reading before; /* what "recent" counts from */
    struct cpu_reading last;
};

void cpu_init(struct cpu *cpu, int64_t now_ms);
/* This process's threads now; shards first, then I/O threads. n is 0 where /proc cannot be read. */
void cpu_read(struct cpu_reading *reading, int64_t now_ms);
/* A new reading becomes the last, and recent counts from the one before it; but nothing changes where that is not a
 * second old. */
void cpu_take(struct cpu *cpu, const struct cpu_reading *reading);
/* cpu_take of a reading, and appends the map "cpu" of ADMIN_STATUS; psd-protocol(7). `cpu` is a struct cpu. */
void cpu_write(void *cpu, struct dt_buffer *body);

#endif
