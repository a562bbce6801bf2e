/*
 * yardstick_products.c - what the machine does of a training: the matrix products of its layers, and nothing else.
 */
#include <cblas.h>
#include <stdlib.h>

#include "bench.h"
#include "proto/base/clock.h"

enum { MOST_LAYERS = 4 };

struct layers {
    unsigned n;
    int width[MOST_LAYERS + 1], batch;
    float *out[MOST_LAYERS + 1];                        /* owned; [0] is the input */
    float *d[MOST_LAYERS + 1];                          /* owned; gradients of out */
    float *kernel[MOST_LAYERS], *gradient[MOST_LAYERS]; /* owned */
};

/* Small numbers that are not all alike, in memory as the training has it. */
static float *
matrix(int rows, int columns)
{
    uint64_t n = (uint64_t)rows * (uint64_t)columns;
    float *m = dtw_alloc(n);

    if (!m)
        bench_fail("short of memory");
    for (uint64_t i = 0; i < n; i++)
        m[i] = (float)(i % 7) / 64;
    return m;
}

static void
make(struct layers *l)
{
    for (unsigned i = 0; i <= l->n; i++) {
        l->out[i] = matrix(l->batch, l->width[i]);
        l->d[i] = matrix(l->batch, l->width[i]);
    }
    for (unsigned i = 0; i < l->n; i++) {
        l->kernel[i] = matrix(l->width[i], l->width[i + 1]);
        l->gradient[i] = matrix(l->width[i], l->width[i + 1]);
    }
}

static void
release(const struct layers *l)
{
    for (unsigned i = 0; i <= l->n; i++) {
        dtw_free(l->out[i], (uint64_t)l->batch * (uint64_t)l->width[i]);
        dtw_free(l->d[i], (uint64_t)l->batch * (uint64_t)l->width[i]);
    }
    for (unsigned i = 0; i < l->n; i++) {
        dtw_free(l->kernel[i], (uint64_t)l->width[i] * (uint64_t)l->width[i + 1]);
        dtw_free(l->gradient[i], (uint64_t)l->width[i] * (uint64_t)l->width[i + 1]);
    }
}

/* Forward; then each layer's gradient, and that of its input but for the first layer's. */
static void
products(const struct layers *l)
{
    for (unsigned i = 0; i < l->n; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, l->batch, l->width[i + 1],
                    l->width[i], 1, l->out[i], l->width[i], l->kernel[i], l->width[i + 1], 0,
                    l->out[i + 1], l->width[i + 1]);
    for (unsigned i = l->n; i-- > 0;) {
        int in = l->width[i], to = l->width[i + 1];

        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, to, l->batch, 1, l->out[i], in,
                    l->d[i + 1], to, 0, l->gradient[i], to);
        if (i > 0)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, l->batch, in, to, 1, l->d[i + 1],
                        to, l->kernel[i], to, 0, l->d[i], in);
    }
}

double
yardstick_products(const int *width, unsigned n_layers, int batch, double seconds)
{
    struct layers l = {.n = n_layers, .batch = batch};
    double start, span;
    uint64_t n = 0;

    if (n_layers == 0 || n_layers > MOST_LAYERS)
        bench_fail("%u layers", n_layers);
    for (unsigned i = 0; i <= n_layers; i++)
        l.width[i] = width[i];
    openblas_set_num_threads(1);
    make(&l);
    products(&l);
    start = dt_now_seconds();
    do {
        products(&l);
        n++;
        span = dt_now_seconds() - start;
    } while (span < seconds);
    release(&l);
    return (double)n * batch / span;
}
