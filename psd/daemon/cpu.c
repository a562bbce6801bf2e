/*
 * cpu.c - /proc/self/task names the threads, the kernel has a clock for each. Shard 0's thread.
 */
#include "psd/daemon/cpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/wire/writer.h"

#define LEAST_MS 1000 /* the share of a shorter time says little */

static const char shard_prefix[] = "shard ", io_prefix[] = "io ", libzmq_io[] = "ZMQbg/IO/";

static bool
has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool
read_name(const char *tid, struct cpu_thread *t)
{
    char path[64], name[32];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, name, sizeof(name) - 1);
    close(fd);
    name[n > 0 ? n - 1 : 0] = 0; /* without its newline */
    if (has_prefix(name, libzmq_io))
        snprintf(t->name, sizeof(t->name), "%s%.8s", io_prefix, name + strlen(libzmq_io));
    else
        snprintf(t->name, sizeof(t->name), "%.15s", name);
    return n > 0;
}

/* As pthread_getcpuclockid does it, but of a thread that libzmq has made: the kernel's clocks of threads are the
 * complement of the thread's id and, in the lowest three bits, "of a thread" (4) and "time on a processor" (2). */
static bool
read_seconds(const char *tid, struct cpu_thread *t)
{
    clockid_t clock = (clockid_t)(~(uint32_t)strtoul(tid, NULL, 10) << 3 | 6);
    struct timespec now;

    if (clock_gettime(clock, &now) != 0)
        return false;
    t->seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return true;
}

static void
add(struct cpu_reading *r, const struct cpu_thread *t)
{
    if (r->n < CPU_MAX_THREADS - 1) /* one is for the others */
        r->threads[r->n++] = *t;
}

/* Adds the threads whose names begin so; with NULL, all others as one. */
static void
read_threads(DIR *tasks, const char *prefix, struct cpu_reading *r)
{
    struct cpu_thread t, others = {.name = "other"};
    const struct dirent *entry;

    rewinddir(tasks);
    while ((entry = readdir(tasks))) {
        if (entry->d_name[0] == '.' || !read_name(entry->d_name, &t) ||
            !read_seconds(entry->d_name, &t))
            continue;
        if (prefix && has_prefix(t.name, prefix))
            add(r, &t);
        else if (!has_prefix(t.name, shard_prefix) && !has_prefix(t.name, io_prefix))
            others.seconds += t.seconds;
    }
    if (!prefix)
        r->threads[r->n++] = others;
}

void
cpu_read(struct cpu_reading *r, int64_t now_ms)
{
    DIR *tasks = opendir("/proc/self/task");

    r->ms = now_ms;
    r->n = 0;
    if (!tasks)
        return;
    read_threads(tasks, shard_prefix, r);
    read_threads(tasks, io_prefix, r);
    read_threads(tasks, NULL, r);
    closedir(tasks);
}

void
cpu_init(struct cpu *cpu, int64_t now_ms)
{
    memset(cpu, 0, sizeof(*cpu));
    cpu->start_ms = cpu->before.ms = cpu->last.ms = now_ms;
}

void
cpu_take(struct cpu *cpu, const struct cpu_reading *reading)
{
    if (reading->ms - cpu->last.ms < LEAST_MS)
        return;
    cpu->before = cpu->last;
    cpu->last = *reading;
}

static double
seconds_of(const struct cpu_reading *r, const char *name)
{
    unsigned i;

    for (i = 0; i < r->n; i++) {
        if (strcmp(r->threads[i].name, name) == 0)
            return r->threads[i].seconds;
    }
    return 0;
}

static void
write_seconds(struct dt_buffer *b, const char *key, double seconds)
{
    dt_write_str(b, key);
    dt_write_double(b, seconds);
}

void
cpu_write(void *arg, struct dt_buffer *b)
{
    struct cpu_reading now;
    struct cpu *cpu = arg;
    unsigned i;

    cpu_read(&now, dt_now_ms());
    cpu_take(cpu, &now);
    dt_write_map(b, 3);
    write_seconds(b, "seconds", (double)(now.ms - cpu->start_ms) / 1000);
    write_seconds(b, "recent_seconds", (double)(now.ms - cpu->before.ms) / 1000);
    dt_write_str(b, "threads");
    dt_write_array(b, now.n);
    for (i = 0; i < now.n; i++) {
        const struct cpu_thread *t = &now.threads[i];

        dt_write_map(b, 3);
        dt_write_str(b, "name");
        dt_write_str(b, t->name);
        write_seconds(b, "total", t->seconds);
        write_seconds(b, "recent", t->seconds - seconds_of(&cpu->before, t->name));
    }
}
