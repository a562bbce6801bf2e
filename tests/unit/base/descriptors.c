/* descriptors.c - whether so many file descriptors are to be had. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/base/descriptors.h"

TestSuite(descriptors, .timeout = 30);

enum { LIMIT = 64 };

/* How many can be opened under the limit. */
static unsigned
count_free(void)
{
    int fds[LIMIT];
    unsigned n = 0, i;

    while (n < LIMIT && (fds[n] = dup(STDERR_FILENO)) >= 0)
        n++;
    for (i = 0; i < n; i++)
        close(fds[i]);
    return n;
}

Test(descriptors, are_counted_and_given_back)
{
    struct dt_error err = {DT_OK, ""};
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = LIMIT;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    unsigned n = count_free();
    enum dt_status all = dt_descriptors_check(n, "this", NULL);
    enum dt_status again = dt_descriptors_check(n, "this", &err);
    enum dt_status none = dt_descriptors_check(0, "this", NULL);
    enum dt_status more = dt_descriptors_check(n + 1, "this", &err);
    unsigned left = count_free();
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    cr_expect_gt(n, 0);
    cr_expect(all == DT_OK && again == DT_OK && none == DT_OK);
    cr_expect_eq(more, DT_E_UNAVAILABLE);
    cr_expect_eq(left, n);
    cr_expect_not_null(strstr(err.text, "the limit of open files is 64"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "ulimit -n"), "%s", err.text);
}

Test(descriptors, are_raised_to_the_hard_limit)
{
    struct rlimit limit, now;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max > 256 ? 256 : limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    dt_descriptors_raise();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
    cr_assert_eq(now.rlim_cur, limit.rlim_max);
}
