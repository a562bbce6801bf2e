/*
 * cpu.c - the threads' processor time: names, and from where recent counts.
 */
#include "psd/daemon/cpu.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "proto/base/clock.h"

TestSuite(cpu, .timeout = 80);

static atomic_bool stop;

/* Works for a tenth of a second of processor time, then waits. */
static void *
work(void *name)
{
    pthread_setname_np(pthread_self(), name);
    while (dt_thread_seconds() < 0.1)
        continue;
    while (!atomic_load(&stop))
        dt_sleep_ms(5);
    return NULL;
}

static double
seconds_of(const struct cpu_reading *r, const char *name)
{
    unsigned i;

    for (i = 0; i < r->n; i++) {
        if (strcmp(r->threads[i].name, name) == 0)
            return r->threads[i].seconds;
    }
    return -1;
}

Test(cpu, threads_by_name)
{
    static char *const names[] = {"ZMQbg/IO/1", "somebody else", "shard 3"};
    struct cpu_reading r;
    pthread_t threads[3];
    unsigned i;

    for (i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, names[i]), 0);
    do {
        dt_sleep_ms(5);
        cpu_read(&r, 7);
    } while (seconds_of(&r, "io 1") < 0.09 || seconds_of(&r, "shard 3") < 0.09 ||
             seconds_of(&r, "other") < 0.09);
    atomic_store(&stop, true);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(r.ms, 7);
    cr_assert_eq(r.n, 3, "all others are one");
    cr_assert_str_eq(r.threads[0].name, "shard 3");
    cr_assert_str_eq(r.threads[1].name, "io 1");
    cr_assert_str_eq(r.threads[2].name, "other");
}

Test(cpu, recent_counts_from_the_status_before_unless_that_is_new)
{
    static const int64_t asked[] = {10000, 10500, 11400, 12400, 60000, 60010, 60020};
    static const int64_t from[] = {1000, 1000, 10000, 11400, 12400, 12400, 12400};
    struct cpu_reading r = {0};
    struct cpu cpu;
    unsigned i;

    cpu_init(&cpu, 1000);
    for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        r.ms = asked[i];
        cpu_take(&cpu, &r);
        cr_assert_eq(cpu.before.ms, from[i], "at %lld: from %lld", (long long)asked[i],
                     (long long)cpu.before.ms);
    }
}
