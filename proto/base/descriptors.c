/*
 * descriptors.c - see descriptors.h. It opens as many as are asked for and closes them again: no other way
 * counts those of other threads and the machine's own limit. Any thread; no state.
 */
#include "proto/base/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static enum dt_status
fail(unsigned n, const char *what, int error, struct dt_error *err)
{
    struct rlimit limit;

    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        return dt_fail(err, DT_E_UNAVAILABLE,
                       "%s needs %u more file descriptors, and the limit of open files is %llu: "
                       "raise it (ulimit -n, LimitNOFILE=)",
                       what, n, (unsigned long long)limit.rlim_cur);
    return dt_fail(err, error == ENOMEM ? DT_E_NO_MEMORY : DT_E_UNAVAILABLE,
                   "%s needs %u more file descriptors: %s", what, n, strerror(error));
}

enum dt_status
dt_descriptors_check(unsigned n, const char *what, struct dt_error *err)
{
    int *fds = malloc((n ? n : 1) * sizeof(*fds));
    unsigned got = 0;
    int error = 0;

    if (!fds)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: out of memory", what);
    for (; got < n && !error; got += !error) {
        fds[got] = eventfd(0, EFD_CLOEXEC);
        error = fds[got] < 0 ? errno : 0;
    }
    while (got > 0)
        close(fds[--got]);
    free(fds);
    return error ? fail(n, what, error, err) : DT_OK;
}

void
dt_descriptors_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
