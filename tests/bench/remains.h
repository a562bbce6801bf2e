/*
 * remains.h - what a benchmark would leave behind: its children and its directories. They go with it, however it ends
 * but by SIGKILL: at exit, and at SIGINT, SIGTERM and SIGHUP, which then end it as if it did not catch them.
 *
 * All functions but remains_only_one: main thread, while no other thread has those signals open.
 */
#ifndef TEST_BENCH_REMAINS_H
#define TEST_BENCH_REMAINS_H

#include <sys/types.h>

#define BENCH_DIRECTORY 64 /* bytes of its path */

/* From here on; once. A signal that is ignored stays so. */
void remains_watch(void);
/* Like fork; the child has this program's signals as they were at its start, and dies with this thread. */
pid_t bench_fork(void);
/* Waits for a child of bench_fork: its status, as waitpid gives it, or -1. */
int bench_wait(pid_t pid);
/* Make one of our own, in TMPDIR or /tmp, with files alone in it. */
void bench_directory(char path[BENCH_DIRECTORY]);
/* It must be empty. */
void bench_directory_remove(const char *path);
/* Of the threads that want to end the process the first returns, the others do not. */
void remains_only_one(void);

#endif
