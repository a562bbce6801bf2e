/*
 * child.c - fork, exec, wait, stop.
 *
 * Invariant: signals are blocked around fork, so a signal meant for the parent never runs the parent's
 * handler in the child. Between fork and exec only async-signal-safe calls. Threads: main alone.
 */
#include "worker/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define WAIT_SLICE_MS 100 /* children are also looked at without their pidfd */

static void
become(const struct child_plan *plan, pid_t parent, const sigset_t *mask)
{
    static const int defaults[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        signal(defaults[i], SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(127); /* the parent died before the call */
    if (plan->own_group)
        setpgid(0, 0);
    if (plan->stdout_fd >= 0)
        dup2(plan->stdout_fd, STDOUT_FILENO);
    if (plan->pass_fd >= 0)
        fcntl(plan->pass_fd, F_SETFD, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(plan->path, plan->argv);
    _exit(127);
}

enum dt_status
child_start(struct child *c, const char *name, const struct child_plan *plan, struct dt_error *err)
{
    pid_t parent = getpid();
    sigset_t all, mask;

    *c = (struct child){.pidfd = -1};
    snprintf(c->name, sizeof(c->name), "%s", name);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    pid_t pid = fork();
    if (pid == 0)
        become(plan, parent, &mask);
    int why = errno;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (pid < 0)
        return dt_fail(err, DT_E_INTERNAL, "%s: no new process: %s", name, strerror(why));
    c->pid = pid;
    c->pidfd = pidfd_open(pid, 0); /* close-on-exec; without it children_wait looks by time */
    return DT_OK;
}

bool
child_is_running(const struct child *c)
{
    return c->pid > 0 && !c->ended;
}

bool
child_reap(struct child *c)
{
    if (!child_is_running(c))
        return true;
    pid_t got = waitpid(c->pid, &c->status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    c->ended = true;
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->pidfd = -1;
    return true;
}

void
child_signal(const struct child *c, int number)
{
    if (child_is_running(c))
        kill(c->pid, number);
}

bool
children_wait(struct child *list, unsigned n, int64_t timeout_ms)
{
    int64_t deadline = dt_deadline(dt_now_ms(), timeout_ms);

    for (;;) {
        struct child *running = NULL;
        for (unsigned i = 0; i < n; i++) {
            if (!child_reap(&list[i]))
                running = &list[i];
        }
        if (!running)
            return true;
        int64_t left = deadline - dt_now_ms();
        if (left <= 0)
            return false;
        struct pollfd p = {.fd = running->pidfd, .events = POLLIN, .revents = 0};
        poll(&p, 1, left < WAIT_SLICE_MS ? (int)left : WAIT_SLICE_MS);
    }
}

void
children_stop(struct child *list, unsigned n, int number, int64_t timeout_ms)
{
    for (unsigned i = 0; i < n; i++)
        child_signal(&list[i], number);
    if (children_wait(list, n, timeout_ms))
        return;
    for (unsigned i = 0; i < n; i++)
        child_signal(&list[i], SIGKILL);
    children_wait(list, n, timeout_ms);
}

const char *
child_end_text(const struct child *c, char *out, size_t bytes)
{
    if (WIFSIGNALED(c->status))
        snprintf(out, bytes, "signal %d (%s)", WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else
        snprintf(out, bytes, "exit code %d", WEXITSTATUS(c->status));
    return out;
}
