/*
 * fingerprint.c - XXH3 over values, gradients and data sets. Any thread.
 */
#include "worker/train/fingerprint.h"

#include <xxhash.h>

uint64_t
fingerprint_values(const float *const *buffers, const uint64_t *elements, uint32_t n)
{
    XXH3_state_t *state = buffers ? XXH3_createState() : NULL;
    uint64_t sum = 0;

    if (!state)
        return 0;
    XXH3_64bits_reset(state);
    for (uint32_t i = 0; i < n; i++)
        XXH3_64bits_update(state, buffers[i], elements[i] * sizeof(float));
    sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

static void
add(XXH3_state_t *state, const void *p, uint64_t bytes)
{
    uint64_t head = p ? bytes : 0;

    XXH3_64bits_update(state, &head, sizeof(head));
    if (p)
        XXH3_64bits_update(state, p, bytes);
}

uint64_t
fingerprint_data(const struct dataset *d)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t shape[] = {d->n_rows, d->n_features, d->n_classes};
    uint64_t sum;

    if (!state)
        return 0;
    XXH3_64bits_reset(state);
    add(state, shape, sizeof(shape));
    add(state, d->x, d->n_rows * d->n_features * sizeof(*d->x));
    add(state, d->y, d->n_rows * sizeof(*d->y));
    add(state, d->t, d->n_rows * sizeof(*d->t));
    sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}
