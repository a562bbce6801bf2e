/*
 * child.h - a child process that never outlives its parent. Thread rule: the main thread alone (the
 * kernel sends the death signal when the thread that forked ends).
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"

struct child {
    char name[32]; /* for messages: "psd 0", "worker 3" */
    pid_t pid;     /* 0: never started */
    int pidfd;     /* readable when it has ended; -1: none */
    bool ended;
    int status; /* as from waitpid, once ended */
};

struct child_plan {
    const char *path;
    char *const *argv;
    int stdout_fd;  /* -1: the parent's */
    int pass_fd;    /* stays open in the child under the same number; -1: none */
    bool own_group; /* the terminal's Ctrl-C does not reach it */
};

/* Start `path`; when this process dies in whatever way the child gets SIGTERM. A program
 * that cannot be run is a child that ends with exit code 127. DT_E_INTERNAL. */
enum dt_status child_start(struct child *c, const char *name, const struct child_plan *plan,
                           struct dt_error *err);
bool child_is_running(const struct child *c);
/* Take its status when it has ended; true: it has (now or before). Does not block. */
bool child_reap(struct child *c);
void child_signal(const struct child *c, int number); /* no effect once it has ended */
/* Wait for all until the time is over; true: all have ended. */
bool children_wait(struct child *list, unsigned n, int64_t timeout_ms);
/* `number`, at most `timeout_ms` to end, then SIGKILL. */
void children_stop(struct child *list, unsigned n, int number, int64_t timeout_ms);
/* "exit code 75", "signal 9 (Killed)" into out. */
const char *child_end_text(const struct child *c, char *out, size_t bytes);

#endif
