/* minimal.c - least squares with libdtworker: minimal [ENDPOINT [JOB [RANK [WORKERS]]]] */
#include <stdio.h>
#include <stdlib.h>

#include "dtworker.h"

enum { ROWS = 16, STEPS = 300 };
static const float truth[3] = {1.5f, -2.0f, 0.5f};

static void
zeros(void *arg, unsigned index, float *values, uint64_t n)
{
    (void)arg, (void)index, (void)values, (void)n; /* they are zero already */
}

/* The mean gradient of (w.x - y)^2 / 2 over rows of our own. */
static void
gradient(const float *w, float *g)
{
    g[0] = g[1] = g[2] = 0;
    for (int i = 0; i < ROWS; i++) {
        float x[3] = {(float)drand48(), (float)drand48(), 1}, e = 0;
        for (int k = 0; k < 3; k++)
            e += (w[k] - truth[k]) * x[k];
        for (int k = 0; k < 3; k++)
            g[k] += e * x[k] / ROWS;
    }
}

int
main(int argc, char **argv)
{
    const char *ps = argc > 1 ? argv[1] : "tcp://127.0.0.1:2222";
    const struct dtw_variable v = {.name = "w", .n_dims = 1, .shape = (uint64_t[]){3}, .lr = 0.5f};
    float w[3], g[3];
    struct dtw_options o;
    struct dtw_client *client = NULL;
    struct dtw_handle *pull;
    struct dtw_error err;
    uint64_t step;
    dtw_tune_allocation(); /* for fast pulls of large variables */
    dtw_options_init(&o);
    o.ps = &ps, o.n_ps = 1, o.job = argc > 2 ? argv[2] : "minimal";
    o.rank = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    o.workers = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
    o.fresh = true; /* in place of what an earlier run has left under this name */
    int bad = dtw_open(&o, &client, &err) || dtw_declare(client, &v, NULL, &err) ||
              dtw_init(client, zeros, NULL, &step, &err) ||
              dtw_pull(client, (float *[]){w}, step, &pull, &err) || dtw_wait(pull, -1, NULL, &err);
    for (srand48((long)o.rank); !bad && dtw_worker_step(client) < STEPS;) {
        gradient(w, g);
        bad = dtw_step(client, (const float *[]){g}, (float *[]){w}, ROWS, 1, NULL, &err);
    }
    bad = bad || dtw_leave(client, 5000, &err);
    if (bad)
        fprintf(stderr, "minimal: %s\n", err.text);
    else
        printf("w = %.3f %.3f %.3f\n", (double)w[0], (double)w[1], (double)w[2]);
    dtw_close(client);
    return bad;
}
