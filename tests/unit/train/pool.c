/* pool.c - every index runs once a run, in threads of their own with the signals blocked. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>

#include "worker/train/pool.h"

TestSuite(pool, .timeout = 60);

#define MOST 64

struct work {
    unsigned done[MOST];
    pthread_t thread[MOST];
    bool takes_signals[MOST];
};

static void
note(void *arg, unsigned i)
{
    struct work *w = arg;
    sigset_t mask;

    w->done[i]++;
    w->thread[i] = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    w->takes_signals[i] = !sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGINT);
}

static void
runs(unsigned n, unsigned times)
{
    struct work w = {0};
    struct pool *p = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(pool_create(n, &p, &err), DT_OK, "%s", err.text);
    for (unsigned i = 0; i < times; i++) {
        pool_run(p, note, &w);
        for (unsigned k = 0; k < n; k++)
            cr_assert_eq(w.done[k], i + 1, "index %u, run %u: %u", k, i, w.done[k]);
    }
    cr_expect(pthread_equal(w.thread[0], pthread_self()), "index 0 is the caller's");
    for (unsigned k = 1; k < n; k++) {
        cr_expect_not(pthread_equal(w.thread[k], w.thread[k - 1]));
        cr_expect_not(w.takes_signals[k]);
    }
    pool_destroy(p);
}

Test(pool, of_one_is_the_caller_alone)
{
    runs(1, 10);
}

Test(pool, of_four_runs_each_index_once_a_run)
{
    runs(4, 2000);
}

Test(pool, of_sixty_four)
{
    runs(MOST, 20);
}

Test(pool, ends_without_a_run)
{
    struct pool *p = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(pool_create(8, &p, &err), DT_OK, "%s", err.text);
    pool_destroy(p);
    pool_destroy(NULL);
}
