/*
 * dtworker.h - the dtworker beside this program, as a process whose report is read.
 */
#ifndef TEST_BENCH_DTWORKER_H
#define TEST_BENCH_DTWORKER_H

#include "bench.h"

struct bench_dtworker {
    pid_t pid;
    int out;
    char errors[128]; /* the file that its standard error goes to; gone at its end */
};

/* Its arguments, up to a NULL; --json is to be among them. `index` tells those apart that run side by side; its files are
 * in `directory`. */
void bench_dtworker_start(struct bench_dtworker *d, const char *directory, unsigned index, ...)
    __attribute__((sentinel));
/* Waits for it; it must end with 0. Its object, which the caller releases. */
json_t *bench_dtworker_end(struct bench_dtworker *d);

#endif
