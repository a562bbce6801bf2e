/*
 * versions.c - dtw_slices: what psd calls the values that were pulled last, and what the last push made of them.
 * Any thread.
 */
#include "worker/lib/client.h"

static void
describe(const struct variable *v, uint32_t k, struct dtw_slice *out)
{
    out->variable = v->whole;
    out->start = v->start + (uint64_t)k * DT_SLICE_ELEMENTS;
    out->n = dt_slice_elements(v->elements, k);
    out->pulled = atomic_load_explicit(&v->versions[k], memory_order_relaxed);
    out->pushed = atomic_load_explicit(&v->made[k], memory_order_relaxed);
}

enum dtw_status
dtw_slices(struct dtw_client *client, struct dtw_slice *slices, uint64_t max, uint64_t *n,
           struct dtw_error *err)
{
    enum dtw_status status = client_enter(client, err);
    uint64_t count = 0;
    uint32_t i, k;

    if (status != DTW_OK)
        return status;
    for (i = 0; i < client->declared.n; i++) {
        const struct variable *v = &client->declared.items[i];

        for (k = 0; k < v->n_slices; k++, count++) {
            if (slices && count < max)
                describe(v, k, &slices[count]);
        }
    }
    client_exit(client);
    if (n)
        *n = count;
    return DTW_OK;
}
