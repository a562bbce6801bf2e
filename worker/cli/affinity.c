/*
 * affinity.c - sets of processors, read and given to threads. Threads: main alone.
 */
#include "worker/cli/affinity.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/parse.h"

cpu_set_t
affinity_allowed(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        CPU_ZERO(&set);
    return set;
}

int
processors(void)
{
    cpu_set_t set = affinity_allowed();

    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

/* "N" or "N-M" */
static bool
parse_part(const char *text, uint64_t *first, uint64_t *last)
{
    char number[24];
    const char *mark = strchr(text, '-');
    size_t n = mark ? (size_t)(mark - text) : strlen(text);

    if (n == 0 || n >= sizeof(number))
        return false;
    memcpy(number, text, n);
    number[n] = '\0';
    return dt_parse_u64(number, first) && dt_parse_u64(mark ? mark + 1 : number, last) &&
           *first <= *last;
}

enum dt_status
affinity_parse(char **parts, cpu_set_t *out, struct dt_error *err)
{
    cpu_set_t allowed = affinity_allowed();

    CPU_ZERO(out);
    for (; parts && *parts; parts++) {
        uint64_t i, last;

        if (!parse_part(*parts, &i, &last))
            return dt_fail(err, DT_E_USAGE,
                           "--cpus: '%s' is no processor: use numbers, as in 0,2-3", *parts);
        for (; i <= last; i++) {
            if (i >= CPU_SETSIZE || !CPU_ISSET(i, &allowed))
                return dt_fail(err, DT_E_USAGE,
                               "--cpus: this process may not use processor %llu: taskset -cp $$ "
                               "shows which it may",
                               (unsigned long long)i);
            CPU_SET(i, out);
        }
    }
    return DT_OK;
}

void
affinity_bind_others(const cpu_set_t *set)
{
    DIR *tasks = CPU_COUNT(set) > 0 ? opendir("/proc/self/task") : NULL;
    const struct dirent *entry;

    if (!tasks)
        return;
    while ((entry = readdir(tasks))) {
        pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);

        if (id > 0 && id != gettid())
            sched_setaffinity(id, sizeof(*set), set); /* one that has ended is not missed */
    }
    closedir(tasks);
}

void
affinity_bind(const cpu_set_t *set)
{
    if (CPU_COUNT(set) > 0)
        sched_setaffinity(0, sizeof(*set), set);
}

bool
affinity_text(const cpu_set_t *set, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int cpu = 0, last; cpu < CPU_SETSIZE && used < size; cpu = last + 1) {
        last = cpu;
        if (!CPU_ISSET(cpu, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        used += (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", cpu);
        if (last > cpu && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%d", last);
    }
    return used < size;
}

bool
affinity_share(const cpu_set_t *allowed, unsigned rank, unsigned workers, unsigned each, char *text,
               size_t size)
{
    unsigned n = 0;
    cpu_set_t share;

    if (workers < 2 || each == 0 || (uint64_t)workers * each != (unsigned)CPU_COUNT(allowed))
        return false;
    CPU_ZERO(&share);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && n++ / each == rank)
            CPU_SET(cpu, &share);
    }
    return affinity_text(&share, text, size);
}
