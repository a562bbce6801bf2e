/*
 * shard_thread.c - the thread of a shard without sockets.
 */
#include "psd/daemon/shard_thread.h"

#include <criterion/criterion.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/clock.h"

TestSuite(shard_thread, .timeout = 80);

static bool
has_summary(struct shard_report *r)
{
    bool has;

    pthread_mutex_lock(&r->lock);
    has = r->summary[0] != 0;
    pthread_mutex_unlock(&r->lock);
    return has;
}

/* The summary comes after a second: there is none in a thread for which no time passes. */
Test(shard_thread, has_the_time_without_a_clock_for_the_stages)
{
    struct serve_config config = {.n_shards = 1,
                                  .window = 32,
                                  .window_bytes = 4u << 20,
                                  .max_session_bytes = 1u << 20,
                                  .memory_quota = 64u << 20,
                                  .stage_clock = NULL};
    struct serve_shared *shared = serve_shared_create(&config);
    struct shard_report report = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct shard_thread t = {.idle_ms = 5, .report = &report};
    struct dt_error err;

    pthread_mutex_init(&report.lock, NULL);
    t.mailboxes = mailboxes_create(1, 16);
    cr_assert(report.fd >= 0 && shared && t.mailboxes && shard_thread_init(&t, shared, 0));
    cr_assert_eq(shard_thread_start(&t, &err), DT_OK, "%s", err.text);
    while (!has_summary(&report))
        dt_sleep_ms(10);
    shard_thread_stop(&t, 100);
    shard_thread_join(&t);
    shard_thread_destroy_shard(&t);
    mailboxes_destroy(t.mailboxes);
    serve_shared_destroy(shared);
    shard_thread_deinit(&t);
    close(report.fd);
    pthread_mutex_destroy(&report.lock);
}
