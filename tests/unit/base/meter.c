/*
 * meter.c - counts, and one wake for a waiting owner.
 */
#include "proto/base/meter.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

TestSuite(meter, .timeout = 120);

/* The eventfd's counter: number of wakes since the last look. */
static uint64_t
take_wakes(int fd)
{
    uint64_t n = 0;

    return read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

Test(meter, counts)
{
    struct dt_meter *m = dt_meter_create(-1);

    dt_meter_add(m, 100);
    dt_meter_add(m, 50);
    cr_assert_eq(m->bytes, 150);
    cr_assert_eq(m->messages, 2);
    m->waiting = true; /* without an eventfd nobody can be woken */
    dt_meter_release(m, 100);
    cr_assert_eq(m->bytes, 50);
    cr_assert_eq(m->messages, 1);
    dt_meter_unref(m);
    dt_meter_unref(NULL);
}

Test(meter, wakes_a_waiting_owner_once)
{
    int fd = eventfd(0, EFD_NONBLOCK);
    struct dt_meter *m = dt_meter_create(fd);
    int i;

    for (i = 0; i < 4; i++)
        dt_meter_add(m, 10);
    dt_meter_release(m, 10);
    cr_assert_eq(take_wakes(fd), 0, "nobody waits");
    m->waiting = true;
    dt_meter_release(m, 10);
    cr_assert_not(m->waiting);
    dt_meter_release(m, 10);
    cr_assert_eq(take_wakes(fd), 1);
    m->waiting = true;
    dt_meter_release(m, 10);
    cr_assert_eq(take_wakes(fd), 1);
    dt_meter_unref(m);
    close(fd);
}

enum { PER_THREAD = 5000, N_THREADS = 3 };

static void *
release_many(void *arg)
{
    struct dt_meter *m = arg;
    int i;

    for (i = 0; i < PER_THREAD; i++)
        dt_meter_release(m, 7);
    dt_meter_unref(m);
    return NULL;
}

Test(meter, releases_of_several_threads)
{
    int fd = eventfd(0, EFD_NONBLOCK), i;
    struct dt_meter *m = dt_meter_create(fd);
    pthread_t threads[N_THREADS];

    m->waiting = true;
    for (i = 0; i < N_THREADS * PER_THREAD; i++)
        dt_meter_add(m, 7);
    for (i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, release_many, dt_meter_ref(m)), 0);
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(m->bytes, 0);
    cr_assert_eq(m->messages, 0);
    cr_assert_eq(take_wakes(fd), 1);
    dt_meter_unref(m);
    close(fd);
}
