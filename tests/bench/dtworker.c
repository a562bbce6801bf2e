/*
 * dtworker.c - a dtworker process, and the object that it prints. Main thread.
 */
#include "dtworker.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 40 };

/* In the child. What it says beside the object is in a file until it fails. */
static _Noreturn void
become(const char *path, char **argv, const char *errors, int out)
{
    int fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    dup2(out, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(path, argv);
    _exit(127);
}

void
bench_dtworker_start(struct bench_dtworker *d, const char *directory, unsigned index, ...)
{
    char path[4096], *argv[MOST_ARGUMENTS] = {"dtworker"};
    int fds[2];
    unsigned n = 1;
    va_list ap;

    va_start(ap, index);
    while (n + 1 < MOST_ARGUMENTS && (argv[n] = va_arg(ap, char *)))
        n++;
    va_end(ap);
    if (argv[n])
        bench_fail("too many arguments for dtworker");
    snprintf(d->errors, sizeof(d->errors), "%s/errors-%u", directory, index);
    bench_find(path, sizeof(path), "dtworker");
    if (pipe2(fds, O_CLOEXEC) || (d->pid = bench_fork()) < 0)
        bench_fail("no process for dtworker");
    if (d->pid == 0)
        become(path, argv, d->errors, fds[1]);
    close(fds[1]);
    d->out = fds[0];
}

static _Noreturn void
fail(const struct bench_dtworker *d, int status)
{
    char line[512];
    FILE *in = fopen(d->errors, "r");

    while (in && fgets(line, sizeof(line), in))
        fputs(line, stderr);
    if (in)
        fclose(in);
    bench_fail("dtworker ended with status %d", status);
}

json_t *
bench_dtworker_end(struct bench_dtworker *d)
{
    FILE *in = fdopen(d->out, "r");
    json_t *o = in ? json_loadf(in, 0, NULL) : NULL;
    int status;

    if (in)
        fclose(in);
    status = bench_wait(d->pid);
    if (status != 0 || !json_is_object(o))
        fail(d, status);
    unlink(d->errors);
    return o;
}
