/*
 * options.c - what needs no server: defaults, checks, sentences, finite values.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "proto/base/finite.h"
#include "worker/lib/data.h"

TestSuite(options, .timeout = 80, .fini = fake_no_leaks);

static enum dtw_status
open_with(void (*change)(struct dtw_options *o), struct dtw_error *err)
{
    static const char *ps[] = {"tcp://127.0.0.1:9"};
    struct dtw_client *client = (struct dtw_client *)1;
    struct dtw_options o;
    enum dtw_status status;

    dtw_options_init(&o);
    o.ps = ps;
    o.n_ps = 1;
    o.job = "job";
    change(&o);
    status = dtw_open(&o, &client, err);
    cr_assert_null(client);
    return status;
}

static void
odd_job(struct dtw_options *o)
{
    o->job = "two words";
}

static void
no_job(struct dtw_options *o)
{
    o->job = "";
}

static void
no_ps(struct dtw_options *o)
{
    o->n_ps = 0;
}

static void
one_ps_twice(struct dtw_options *o)
{
    static const char *twice[] = {"tcp://127.0.0.1:9", "tcp://127.0.0.1:10", "tcp://127.0.0.1:9"};

    o->ps = twice;
    o->n_ps = 3;
}

static void
bad_reduce(struct dtw_options *o)
{
    o->reduce = "average";
}

static void
bad_loss(struct dtw_options *o)
{
    o->on_loss = NULL;
}

static void
bad_locking(struct dtw_options *o)
{
    o->locking = "mutex";
}

static void
bad_placement(struct dtw_options *o)
{
    o->placement = "random";
}

static void
short_lease(struct dtw_options *o)
{
    o->lease_ms = 99;
}

static void
high_rank(struct dtw_options *o)
{
    o->rank = 1024;
}

static void
no_size(struct dtw_options *o)
{
    o->size = 0;
}

static void
bad_endpoint(struct dtw_options *o)
{
    static const char *ps[] = {"http://x"};

    o->ps = ps;
}

static void
bad_host(struct dtw_options *o)
{
    static const char *ps[] = {"tcp://no-such-host.invalid:2222"};

    o->ps = ps;
}

Test(options, defaults)
{
    struct dtw_options o;

    dtw_options_init(&o);
    cr_assert_eq(o.size, sizeof(o));
    cr_assert_eq(o.lease_ms, 10000);
    cr_assert_eq(o.retry_for_ms, 60000);
    cr_assert_eq(o.max_bad, 10);
    cr_assert_eq(o.workers, 1);
    cr_assert_eq(o.stop_fd, -1);
    cr_assert_str_eq(o.reduce, "mean");
    cr_assert_str_eq(o.on_loss, "shrink");
}

Test(options, nonsense_is_invalid_and_named)
{
    struct dtw_error err;

    cr_assert_eq(open_with(odd_job, &err), DTW_INVALID);
    cr_assert_eq(open_with(no_job, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "job"));
    cr_assert_eq(open_with(no_ps, &err), DTW_INVALID);
    cr_assert_eq(open_with(one_ps_twice, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "ps task 2") && strstr(err.text, "127.0.0.1:9"), "%s", err.text);
    cr_assert_eq(open_with(bad_reduce, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "average") && strstr(err.text, "mean, count, sum"));
    cr_assert_eq(open_with(bad_loss, &err), DTW_INVALID);
    cr_assert_eq(open_with(bad_locking, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "mutex") && strstr(err.text, "slice, none"));
    cr_assert_eq(open_with(bad_placement, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "random") && strstr(err.text, "greedy, round-robin"));
    cr_assert_eq(open_with(short_lease, &err), DTW_INVALID);
    cr_assert(strstr(err.text, "99 ms"));
    cr_assert_eq(open_with(high_rank, &err), DTW_INVALID);
    cr_assert_eq(open_with(no_size, &err), DTW_INVALID);
    cr_assert_eq(dtw_open(NULL, NULL, NULL), DTW_INVALID);
}

Test(options, endpoints_that_do_not_resolve)
{
    struct dtw_error err;

    cr_assert_eq(open_with(bad_endpoint, &err), DTW_RESOLVE);
    cr_assert_eq(open_with(bad_host, &err), DTW_RESOLVE);
    cr_assert(strstr(err.text, "no-such-host.invalid"), "%s", err.text);
}

Test(options, every_status_has_a_sentence)
{
    int s;

    for (s = DTW_OK; s <= DTW_INTERNAL; s++)
        cr_assert(strcmp(dtw_strerror((enum dtw_status)s), "unknown status") != 0, "%d", s);
    cr_assert_str_eq(dtw_strerror((enum dtw_status)22), "unknown status");
    cr_assert_str_eq(dtw_strerror((enum dtw_status) - 1), "unknown status");
}

Test(options, dt_status_maps_to_the_public_subset)
{
    cr_assert_eq(client_status(DT_OK), DTW_OK);
    cr_assert_eq(client_status(DT_R_NOT_FINITE), DTW_NOT_FINITE);
    cr_assert_eq(client_status(DT_R_TOO_MANY_BAD), DTW_TOO_MANY_BAD);
    cr_assert_eq(client_status(DT_R_QUOTA), DTW_REFUSED);
    cr_assert_eq(client_status(DT_R_RANK_TAKEN), DTW_RANK_TAKEN);
    cr_assert_eq(client_status((enum dt_status)999), DTW_REFUSED);
    cr_assert_eq(client_status(DT_E_NO_MEMORY), DTW_NO_MEMORY);
    cr_assert_eq(client_status(DT_E_ADDRESS_IN_USE), DTW_INTERNAL);
}

Test(options, finite_values)
{
    static float v[10000];
    size_t where[] = {0, 1, 4095, 4096, 9999};
    unsigned i;

    v[77] = 3.4e38f;
    v[78] = 1e-45f;
    cr_assert(dt_is_finite(v, 10000));
    cr_assert(dt_is_finite(v, 0));
    for (i = 0; i < 5; i++) {
        v[where[i]] = NAN;
        cr_assert_not(dt_is_finite(v, 10000));
        v[where[i]] = -INFINITY;
        cr_assert_not(dt_is_finite(v, 10000));
        v[where[i]] = 0;
    }
}

Test(options, null_arguments)
{
    dtw_close(NULL);
    dtw_cancel(NULL);
    dtw_interrupt(NULL);
    dtw_free(NULL, 3);
    cr_assert_null(dtw_alloc(0));
    cr_assert_null(dtw_alloc(UINT64_MAX));
    cr_assert_eq(dtw_wait(NULL, 0, NULL, NULL), DTW_INVALID);
    cr_assert_eq(dtw_leave(NULL, 0, NULL), DTW_INVALID);
    cr_assert_eq(dtw_worker_step(NULL), 0);
}

Test(options, alloc_gives_zeros)
{
    float *p = dtw_alloc(1000);

    cr_assert(p && p[0] == 0 && p[999] == 0);
    cr_assert_eq((uintptr_t)p % (2u << 20), 0);
    dtw_free(p, 1000);
}
