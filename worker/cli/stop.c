/*
 * stop.c - signals that ask to stop. The handler may run in any thread: it writes one eventfd.
 */
#include "worker/cli/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/descriptors.h"

#define SAME_REQUEST_MS 300 /* one that comes twice at a time, as from timeout(1), is one */

static volatile sig_atomic_t first_signal;
static volatile int64_t first_ms;
static int fd = -1;

static void
handle(int number)
{
    int saved = errno;
    uint64_t one = 1;

    if (first_signal == 0) {
        first_signal = number;
        first_ms = dt_now_ms();
    } else if (number == first_signal && dt_now_ms() - first_ms >= SAME_REQUEST_MS) {
        signal(number, SIG_DFL);
        raise(number); /* comes when this returns */
    }
    ssize_t n = write(fd, &one, sizeof(one));
    (void)n; /* only fails when it is readable already */
    errno = saved;
}

enum dt_status
stop_open(struct dt_error *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return dt_descriptors_check(1, "dtworker", err) != DT_OK
                   ? err->code
                   : dt_fail(err, DT_E_INTERNAL, "eventfd: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction now, action = {.sa_handler = handle, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            continue; /* nohup, or a shell's background job */
        sigaction(numbers[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    return DT_OK;
}

int
stop_fd(void)
{
    return fd;
}

int
stop_signal(void)
{
    return first_signal;
}

int
stop_raise(void)
{
    int number = first_signal;
    sigset_t set;

    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    return 128 + number;
}
