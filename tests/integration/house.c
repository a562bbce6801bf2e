/*
 * house.c - psd in a thread of the test.
 */
#include "house.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "psd/daemon/config.h"
#include "psd/daemon/daemon.h"
#include "psd/daemon/signals.h"

static void *
serve(void *arg)
{
    struct house *h = arg;
    char *argv[] = {"psd",
                    "--listen",
                    h->endpoint,
                    "--admin",
                    "none",
                    "-o",
                    h->shards,
                    "-o",
                    h->window,
                    "-o",
                    "log_level=err",
                    "-o",
                    "together_bytes=0",
                    NULL};
    int argc = (int)(sizeof(argv) / sizeof(argv[0])) - 1;
    struct config config;
    struct dt_error err;

    h->code = -1;
    if (config_load(&config, argc, argv, &err) == DT_OK)
        h->code = daemon_run(&config, argc, argv);
    else
        fprintf(stderr, "house: %s\n", err.text);
    config_deinit(&config);
    return NULL;
}

void
house_open(struct house *h, unsigned n_shards, unsigned window)
{
    dt_log_open("psd", DT_LOG_ERR);
    h->consistency = h->locking = NULL;
    h->staleness_bound = 0;
    strcpy(h->dir, "/tmp/psd-house-XXXXXX");
    cr_assert_not_null(mkdtemp(h->dir));
    snprintf(h->endpoint, sizeof(h->endpoint), "ipc://%s/psd", h->dir);
    snprintf(h->shards, sizeof(h->shards), "shards=%u", n_shards);
    snprintf(h->window, sizeof(h->window), "window=%u", window);
    signals_block();
    cr_assert_eq(pthread_create(&h->thread, NULL, serve, h), 0);
}

static unsigned
count_files(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    unsigned n = 0;

    cr_assert_not_null(d);
    while ((e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

void
house_close(struct house *h)
{
    pthread_kill(h->thread,
                 SIGTERM); /* blocked there: the daemon's signalfd reads it. BLAS threads do not */
    pthread_join(h->thread, NULL);
    cr_assert_eq(h->code, 0);
    cr_assert_eq(count_files(h->dir), 0, "a socket or lock is left");
    rmdir(h->dir);
}

static void
log_line(void *arg, enum dtw_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    fprintf(stderr, "worker: %s\n", line);
}

void
house_options(struct house *h, struct dtw_options *o, unsigned rank, unsigned workers)
{
    static const char *ps[1];

    ps[0] = h->endpoint;
    dtw_options_init(o);
    o->ps = ps;
    o->n_ps = 1;
    o->job = "house";
    o->rank = rank;
    o->workers = workers;
    o->consistency = h->consistency ? h->consistency : "sync";
    o->locking = h->locking ? h->locking : "slice";
    o->staleness_bound = h->staleness_bound;
    o->log = log_line;
    o->retry_for_ms = 20000;
}

static void
fill_zeros(void *arg, unsigned index, float *values, uint64_t n)
{
    (void)arg;
    (void)index;
    memset(values, 0, n * sizeof(*values));
}

struct dtw_client *
house_worker(struct house *h, unsigned rank, unsigned workers, unsigned n, uint64_t elements,
             uint64_t *first_step)
{
    struct dtw_client *c = NULL;
    struct dtw_options o;
    struct dtw_error err = {DTW_OK, ""};
    unsigned i;

    house_options(h, &o, rank, workers);
    cr_assert_eq(dtw_open(&o, &c, &err), DTW_OK, "%s", err.text);
    for (i = 0; i < n; i++) {
        char name[16];
        struct dtw_variable v = {
            .name = name, .n_dims = 1, .shape = &elements, .optimizer = "sgd", .lr = 1};

        snprintf(name, sizeof(name), "v%u", i);
        v.init = "zeros";
        cr_assert_eq(dtw_declare(c, &v, NULL, &err), DTW_OK, "%s", err.text);
    }
    cr_assert_eq(dtw_init(c, fill_zeros, NULL, first_step, &err), DTW_OK, "%s", err.text);
    return c;
}

void
house_pull(struct dtw_client *c, float **values, uint64_t want)
{
    struct dtw_handle *pull;
    struct dtw_error err = {DTW_OK, ""};

    cr_assert_eq(dtw_pull(c, values, want, &pull, &err), DTW_OK, "%s", err.text);
    cr_assert_eq(dtw_wait(pull, 20000, NULL, &err), DTW_OK, "%s", err.text);
}

float **
house_arrays(unsigned n, uint64_t elements, float x)
{
    float **arrays = calloc(n, sizeof(*arrays));
    uint64_t k;
    unsigned i;

    for (i = 0; i < n; i++) {
        arrays[i] = dtw_alloc(elements);
        cr_assert_not_null(arrays[i]);
        for (k = 0; k < elements; k++)
            arrays[i][k] = x;
    }
    return arrays;
}

void
house_arrays_free(float **arrays, unsigned n, uint64_t elements)
{
    unsigned i;

    for (i = 0; i < n; i++)
        dtw_free(arrays[i], elements);
    free(arrays);
}
