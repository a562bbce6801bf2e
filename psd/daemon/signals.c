/*
 * signals.c - psd's signals. Main thread; the handlers of the alarm and of a second signal are the asynchronous
 * pieces: they unlink what leftovers.c knows, and end the process.
 */
#include "psd/daemon/signals.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "psd/daemon/leftovers.h"

#define EXIT_INTERNAL 70
#define SAME_REQUEST_MS 300

static char stuck_line[128];
static size_t stuck_bytes;
static volatile int64_t requested_ms; /* when the first signal came; 0: none yet */

static void
fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

void
signals_block(void)
{
    sigset_t set;

    fill(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int
signals_open(void)
{
    sigset_t set;

    fill(&set);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int
signals_read(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

static void
stop_is_stuck(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, stuck_line, stuck_bytes);
    leftovers_remove();
    _exit(EXIT_INTERNAL);
}

static void
arm_deadline(int64_t timeout_ms)
{
    struct itimerval timer = {0};
    struct sigaction action = {0};

    snprintf(stuck_line, sizeof(stuck_line),
             "%spsd: err: the stop did not end within stop_timeout (%lld ms): gave up\n",
             getenv("JOURNAL_STREAM") ? "<3>" : "", (long long)timeout_ms);
    stuck_bytes = strlen(stuck_line);
    action.sa_handler = stop_is_stuck;
    sigaction(SIGALRM, &action, NULL);
    timer.it_value.tv_sec = (time_t)(timeout_ms / 1000);
    timer.it_value.tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* One request may come twice at a time, as from timeout(1): that is no second one. A stop that no signal began (--once,
 * psctl) takes the first one as the request that it fulfils. */
static void
stop_again(int number)
{
    int64_t now = dt_now_ms();

    if (requested_ms == 0)
        requested_ms = now;
    if (now - requested_ms < SAME_REQUEST_MS)
        return;
    leftovers_remove();
    signal(number, SIG_DFL);
    raise(number); /* comes when this returns */
}

static void
arm_second_signal(bool by_signal)
{
    struct sigaction action = {0};

    requested_ms = by_signal ? dt_now_ms() : 0;
    action.sa_handler = stop_again;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

void
signals_begin_stop(int64_t timeout_ms, bool by_signal)
{
    sigset_t set;

    arm_deadline(timeout_ms);
    arm_second_signal(by_signal);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
