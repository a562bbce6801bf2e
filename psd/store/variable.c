/*
 * variable.c - declarations with homes, and a shard's part of a variable.
 */
#include "psd/store/variable.h"

#include <stdlib.h>
#include <string.h>

/* `o` may be NULL: no slots */
static uint64_t
slice_charge(uint64_t elements, uint32_t i, const struct optimizer *o, uint32_t ranks)
{
    uint32_t n = dt_slice_elements(elements, i);
    uint64_t bytes = 2 * dt_block_charge(n * sizeof(float)); /* values and one accumulator */
    unsigned k;

    for (k = 0; o && k < optimizer_n_slots(o); k++)
        bytes += dt_block_charge(optimizer_slot_elements(o, k, n) * sizeof(float));
    return bytes + sizeof(struct slice) + ranks * sizeof(struct push_row);
}

/* All slices but the last are of one size. Declarations are bounded: the sum fits (2^62). */
static uint64_t
variable_charge(const struct dt_declaration *d, uint32_t ranks)
{
    uint64_t elements = dt_declaration_elements(d);
    uint32_t n = dt_n_slices(elements);
    struct optimizer o;
    bool known = variable_optimizer(d, &o, NULL) == DT_OK;

    if (n == 0)
        return 0;
    return (n - 1) * slice_charge(elements, 0, known ? &o : NULL, ranks) +
           slice_charge(elements, n - 1, known ? &o : NULL, ranks);
}

uint64_t
declared_charge(const struct dt_declaration *decls, uint32_t n, uint32_t task, uint32_t ranks)
{
    uint64_t bytes = 0;
    uint32_t i;

    for (i = 0; i < n; i++) {
        if (decls[i].task == task)
            bytes += variable_charge(&decls[i], ranks);
    }
    return bytes;
}

static uint32_t
least_loaded(const uint64_t *load, uint32_t n)
{
    uint32_t i, best = 0;

    for (i = 1; i < n; i++) {
        if (load[i] < load[best])
            best = i;
    }
    return best;
}

static bool
place_variable(struct declared *d, struct declared_variable *v, uint64_t *load, uint32_t n_shards)
{
    uint32_t i;

    v->n_slices = dt_n_slices(v->elements);
    v->homes = malloc(v->n_slices ? v->n_slices : 1);
    if (!v->homes)
        return false;
    for (i = 0; i < v->n_slices; i++) {
        uint32_t home = least_loaded(load, n_shards);

        v->homes[i] = (uint8_t)home;
        load[home] += dt_slice_elements(v->elements, i) * sizeof(float);
    }
    d->n_slices += v->n_slices;
    return true;
}

struct declared *
declared_create(const struct dt_declaration *decls, uint32_t n, uint32_t task, uint32_t n_shards)
{
    struct declared *d = calloc(1, sizeof(*d) + n * sizeof(d->variables[0]));
    uint64_t load[DT_MAX_SHARDS] = {0};
    uint32_t i;

    if (!d)
        return NULL;
    d->n = n;
    d->fingerprint = DT_FINGERPRINT_START;
    for (i = 0; i < n; i++) {
        struct declared_variable *v = &d->variables[i];

        v->decl = decls[i];
        v->elements = dt_declaration_elements(&decls[i]);
        d->fingerprint = dt_declaration_fingerprint(d->fingerprint, &decls[i]);
        if (decls[i].task == task && !place_variable(d, v, load, n_shards)) {
            declared_destroy(d);
            return NULL;
        }
    }
    return d;
}

void
declared_destroy(struct declared *d)
{
    uint32_t i;

    if (!d)
        return;
    for (i = 0; i < d->n; i++)
        free(d->variables[i].homes);
    free(d);
}

enum dt_status
variable_optimizer(const struct dt_declaration *d, struct optimizer *out, struct dt_error *err)
{
    struct optimizer_param params[DT_MAX_OPTIMIZER_PARAMS];
    uint32_t i;

    for (i = 0; i < d->n_params; i++)
        params[i] = (struct optimizer_param){d->params[i].name, d->params[i].value};
    if (optimizer_init(out, d->optimizer, params, d->n_params, err) != DT_OK)
        return dt_fail_prefix(err, "variable %s", d->name);
    return DT_OK;
}

static bool
init_slots(struct slice *s, const struct optimizer *o, struct dt_pool *pool)
{
    unsigned i;
    size_t k;

    for (i = 0; i < optimizer_n_slots(o); i++) {
        size_t n = optimizer_slot_elements(o, i, s->n);

        s->slots[i] = dt_block_create(pool, n * sizeof(float));
        if (!s->slots[i])
            return false;
        for (k = 0; k < n; k++)
            ((float *)s->slots[i]->data)[k] = optimizer_slot_start(o, i);
    }
    return true;
}

bool
variable_init(struct variable *v, const struct declared_variable *declared, uint32_t shard,
              struct dt_pool *pool)
{
    uint32_t i;

    memset(v, 0, sizeof(*v));
    v->declared = declared;
    if (variable_optimizer(&declared->decl, &v->optimizer, NULL) != DT_OK)
        return false;
    v->slices = calloc(declared->n_slices + 1, sizeof(*v->slices));
    if (!v->slices)
        return false;
    v->n_slices = declared->n_slices;
    for (i = 0; i < v->n_slices; i++) {
        if (declared->homes[i] != shard)
            continue;
        v->slices[i] = slice_create(v, i, dt_slice_elements(declared->elements, i), pool);
        if (!v->slices[i] || !init_slots(v->slices[i], &v->optimizer, pool))
            return false;
    }
    return true;
}

void
variable_deinit(struct variable *v)
{
    uint32_t i;

    for (i = 0; i < v->n_slices; i++)
        slice_destroy(v->slices[i]);
    free(v->slices);
    memset(v, 0, sizeof(*v));
}
