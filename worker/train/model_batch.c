/*
 * model_batch.c - scratch memory for a run of rows, and gathering them.
 *
 * Invariant: scratch memory is taken once, when a model is made; a batch that does not fit goes through
 * it in chunks. Threads: those of model.c.
 */
#include "worker/train/model_rule.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64u                        /* bytes */
#define FETCH_ELEMENTS 2048u                  /* 8 KiB of a row */
#define SCRATCH_ELEMENTS (UINT64_C(16) << 20) /* 64 MiB for the widest part at most */

/* At least one, enough for a batch where memory allows. */
uint32_t
model_chunk_rows(const struct model *m, uint64_t floats)
{
    uint64_t fit = SCRATCH_ELEMENTS / floats;
    uint64_t want = m->max_batch > m->least_chunk ? m->max_batch : m->least_chunk;

    if (want > fit)
        want = fit;
    return want > 0 ? (uint32_t)want : 1;
}

float *
model_scratch(const struct model *m, uint64_t width)
{
    return malloc((size_t)m->chunk * width * sizeof(float));
}

/* Rows are read at random: no processor guesses the next one. What is far beyond a cache of its own is left to it. */
static void
fetch(const float *row, size_t width)
{
    size_t n = width < FETCH_ELEMENTS ? width : FETCH_ELEMENTS;

    for (size_t i = 0; i < n; i += CACHE_LINE / sizeof(float))
        __builtin_prefetch(row + i);
}

void
model_gather(struct model *m, const struct dataset *data, const uint64_t *rows, uint32_t n)
{
    size_t width = m->n_features;

    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 < n)
            fetch(data->x + rows[i + 1] * width, width);
        memcpy(m->x + i * width, data->x + rows[i] * width, width * sizeof(float));
    }
}
