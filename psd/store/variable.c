/*
 * variable.c - a shard's part of a variable. The shard's thread.
 */
#include "psd/store/variable.h"

#include <stdlib.h>
#include <string.h>

static struct slice *
make_slice(struct variable *v, uint32_t i, uint32_t shard, struct dt_pool *pool, bool *failed)
{
    const struct declared_variable *d = v->declared;
    uint32_t n = dt_slice_elements(d->elements, i);
    struct slice *s;

    if (!d->shared && d->homes[i] != shard)
        return NULL;
    s = d->shared ? slice_create_shared(v, i, n, &d->shared[i]) : slice_create(v, i, n, pool);
    *failed = !s;
    return s;
}

bool
variable_init(struct variable *v, const struct declared_variable *declared, uint32_t shard,
              struct dt_pool *pool)
{
    bool failed = false;
    uint32_t i;

    memset(v, 0, sizeof(*v));
    v->declared = declared;
    if (declared_optimizer(&declared->decl, &v->optimizer, NULL) != DT_OK)
        return false;
    v->slices = calloc(declared->n_slices + 1, sizeof(*v->slices));
    if (!v->slices)
        return false;
    v->n_slices = declared->n_slices;
    for (i = 0; i < v->n_slices && !failed; i++)
        v->slices[i] = make_slice(v, i, shard, pool, &failed);
    return !failed;
}

void
variable_deinit(struct variable *v)
{
    uint32_t i;

    for (i = 0; i < v->n_slices; i++)
        slice_destroy(v->slices[i]);
    free(v->slices);
    setting_deinit(&v->lr);
    memset(v, 0, sizeof(*v));
}
