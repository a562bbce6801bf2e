/*
 * bench_client.c - a client of one variable, which begins as zeros. The worker's thread.
 */
#include "bench.h"

#include <string.h>

static void
zeros(void *arg, unsigned index, float *values, uint64_t n)
{
    (void)arg;
    (void)index;
    memset(values, 0, n * sizeof(*values));
}

struct dtw_client *
bench_open(const struct dtw_options *options, const struct dtw_variable *variable)
{
    struct dtw_client *c = NULL;
    struct dtw_error err = {DTW_OK, ""};

    if (dtw_open(options, &c, &err) != DTW_OK || dtw_declare(c, variable, NULL, &err) != DTW_OK ||
        dtw_init(c, zeros, NULL, NULL, &err) != DTW_OK)
        bench_fail("worker %u: %s", options->rank, err.text);
    return c;
}

void
bench_pull(struct dtw_client *client, float *values)
{
    struct dtw_handle *h;
    struct dtw_error err = {DTW_OK, ""};

    if (dtw_pull(client, &values, 0, &h, &err) != DTW_OK || dtw_wait(h, -1, NULL, &err) != DTW_OK)
        bench_fail("pull: %s", err.text);
}
