/*
 * bench.h - what the benchmarks share: options, a psd process of their own, output.
 *
 * A benchmark that fails prints one line and ends the process with 1; its children and directories go with it
 * (remains.h).
 */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "remains.h"
#include "worker/lib/dtworker.h"

/* What a benchmark may have beside --json; in brackets the default. */
enum bench_option {
    BENCH_SECONDS = 1,   /* --seconds S (1) */
    BENCH_MAX_MIB = 2,   /* --max-mib N (256) */
    BENCH_BYTES = 4,     /* --bytes N */
    BENCH_TRANSPORT = 8, /* --transport tcp|ipc */
    BENCH_ONLY = 16,     /* --only NAME */
    BENCH_WORKERS = 32,  /* --workers N */
    BENCH_ACTIVE = 64,   /* --active N */
};

struct bench {
    double seconds;        /* of one point */
    unsigned max_mib;      /* nothing larger is moved at once */
    uint64_t bytes;        /* only this size, where a benchmark has several; 0: all */
    const char *only;      /* likewise what has this name; NULL: all */
    const char *transport; /* likewise; tcp or ipc */
    unsigned workers;      /* where that is to be chosen, */
    unsigned active;       /* and those of them that are busy; 0: the benchmark's default */
    bool json;
    json_t *result; /* owned: "rows" and what else is told */
};

/* Reads those of `options` (enum bench_option); anything else ends the process with one line and 64. */
void bench_init(struct bench *b, unsigned options, int argc, char **argv);
bool bench_wants(const struct bench *b, const char *name); /* see --only */
/* A row of the table: one object; takes it. */
void bench_row(struct bench *b, json_t *row);
/* A number beside the table. */
void bench_note(struct bench *b, const char *name, double value);
/* Prints the JSON object where --json was given. Without a row the options were wrong: 64. */
void bench_finish(struct bench *b);
double bench_cpu_seconds(void); /* of this process so far */
/* One line on stderr, and the process ends; what it has made goes. Any thread: the first one's is told. */
_Noreturn void bench_end(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define bench_fail(...) bench_end(1, __VA_ARGS__)
#define bench_refuse(...) bench_end(64, __VA_ARGS__) /* the options were wrong */

/* The program `name` beside this one. */
void bench_find(char *path, size_t bytes, const char *name);

struct bench_psd {
    pid_t pid;
    char directory[BENCH_DIRECTORY];
    char endpoint[96];
};

/* The psd beside this program, on loopback or on an ipc socket in a directory of its own. `n_shards` 0: its default. */
void bench_psd_start(struct bench_psd *p, bool tcp, unsigned n_shards);
double bench_psd_peak_mib(const struct bench_psd *p); /* of its memory so far */
double bench_psd_cpu_seconds(const struct bench_psd *p);
void bench_psd_stop(struct bench_psd *p); /* SIGTERM; it must end with 0 */

/* Opens the job of `options` and declares its one variable, which begins as zeros. */
struct dtw_client *bench_open(const struct dtw_options *options,
                              const struct dtw_variable *variable);
void bench_pull(struct dtw_client *client, float *values); /* waits for them */

struct bench_rate {
    double rate; /* messages or bytes a second */
    double
        cpu; /* CPU seconds of all who take part for each of them: a load beside them changes it little */
};

/* Yardsticks; each runs for `seconds`. */
/* One DEALER sends frames of `bytes` to one ROUTER, `window` in flight, each answered by a few bytes:
 * messages a second. */
struct bench_rate yardstick_router_dealer(bool tcp, size_t bytes, unsigned window, double seconds);
/* One plain stream socket, 1 MiB writes; the other end applies what comes (sgd) or stores it: bytes a second. */
struct bench_rate yardstick_stream(bool tcp, size_t bytes, bool apply, double seconds);
/* kernel_add over `elements` in one thread: calls a second. */
double yardstick_add(size_t elements, double seconds);
/* yardstick_products.c: the matrix products of a gradient in one thread: rows a second. */
double yardstick_products(const int *width, unsigned n_layers, int batch, double seconds);

#endif
