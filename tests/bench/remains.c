/*
 * remains.c - children and directories that end with the process. The lists are changed with the signals blocked;
 * what runs in the signal handler is async-signal-safe.
 */
#include "remains.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { MOST_CHILDREN = 8, MOST_DIRECTORIES = 4 };

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
static const unsigned n_signals = sizeof(signals) / sizeof(signals[0]);
static pthread_t main_thread;
static atomic_flag ending = ATOMIC_FLAG_INIT;
static pid_t children[MOST_CHILDREN];                       /* 0: none */
static char directories[MOST_DIRECTORIES][BENCH_DIRECTORY]; /* "": none */

static void
remove_files(const char *directory)
{
    char entries[4096] __attribute__((aligned(8)));
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n, at;

    while (fd >= 0 && (n = getdents64(fd, entries, sizeof(entries))) > 0) {
        for (at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(entries + at);

            unlinkat(fd, entry->d_name, 0);
            at += entry->d_reclen;
        }
    }
    if (fd >= 0)
        close(fd);
}

static void
end_all(void)
{
    unsigned i;

    for (i = 0; i < MOST_CHILDREN; i++) {
        if (children[i])
            kill(children[i], SIGTERM);
    }
    for (i = 0; i < MOST_CHILDREN; i++) {
        if (children[i])
            waitpid(children[i], NULL, 0);
    }
    for (i = 0; i < MOST_DIRECTORIES; i++) {
        if (directories[i][0]) {
            remove_files(directories[i]);
            rmdir(directories[i]);
        }
    }
}

/* In the main thread, which makes what is to be removed and is stopped by it. A second signal ends the process at once. */
static void
end_by_signal(int number)
{
    unsigned i;

    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, number);
        return;
    }
    if (atomic_flag_test_and_set(&ending))
        return;
    for (i = 0; i < n_signals; i++)
        signal(signals[i], SIG_DFL);
    end_all();
    raise(number);
}

static sigset_t
block(void)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    return before;
}

static void
unblock(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void
remains_watch(void)
{
    struct sigaction ours = {.sa_handler = end_by_signal}, was;
    unsigned i;

    main_thread = pthread_self();
    sigfillset(&ours.sa_mask);
    atexit(end_all);
    for (i = 0; i < n_signals; i++) {
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(signals[i], &ours, NULL);
    }
}

void
remains_only_one(void)
{
    while (atomic_flag_test_and_set(&ending))
        pause();
}

/* The handler is not the child's. */
static void
forget_handlers(void)
{
    struct sigaction was;
    unsigned i;

    for (i = 0; i < n_signals; i++) {
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler == end_by_signal)
            signal(signals[i], SIG_DFL);
    }
}

static pid_t *
place_of(pid_t pid)
{
    unsigned i;

    for (i = 0; i < MOST_CHILDREN; i++) {
        if (children[i] == pid)
            return &children[i];
    }
    bench_fail("more children than there is room for");
}

pid_t
bench_fork(void)
{
    sigset_t before = block();
    pid_t *place = place_of(0), pid = fork();

    if (pid > 0)
        *place = pid;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        forget_handlers();
    }
    unblock(&before);
    return pid;
}

/* It is in the list for as long as it can be killed. */
int
bench_wait(pid_t pid)
{
    int status = -1;
    siginfo_t ended;
    sigset_t before;

    waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT);
    before = block();
    if (waitpid(pid, &status, 0) != pid)
        status = -1;
    *place_of(pid) = 0;
    unblock(&before);
    return status;
}

static char *
directory_of(const char *path)
{
    unsigned i;

    for (i = 0; i < MOST_DIRECTORIES; i++) {
        if (!strcmp(directories[i], path))
            return directories[i];
    }
    bench_fail("more directories than there is room for");
}

void
bench_directory(char path[BENCH_DIRECTORY])
{
    const char *parent = getenv("TMPDIR");
    sigset_t before;

    if (!parent || strlen(parent) > 40) /* a socket's path is short */
        parent = "/tmp";
    snprintf(path, BENCH_DIRECTORY, "%s/psd-bench-XXXXXX", parent);
    before = block();
    if (!mkdtemp(path))
        bench_fail("no directory under %s", parent);
    memcpy(directory_of(""), path, BENCH_DIRECTORY);
    unblock(&before);
}

void
bench_directory_remove(const char *path)
{
    sigset_t before = block();

    if (rmdir(path))
        bench_fail("%s is not empty", path);
    directory_of(path)[0] = 0;
    unblock(&before);
}
