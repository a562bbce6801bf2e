/*
 * declared.c - declarations with homes or shared slices. Shard 0 makes and frees them.
 */
#include "psd/store/declared.h"

#include <stdlib.h>
#include <string.h>

#include "psd/store/slice.h"

/* `o` may be NULL: no slots */
static uint64_t
slice_charge(uint64_t elements, uint32_t i, const struct optimizer *o,
             const struct declared_place *where)
{
    uint32_t n = dt_slice_elements(elements, i), replicas = where->racy ? where->n_shards : 1;
    uint64_t bytes = (2 + (uint64_t)where->held) *
                     dt_block_charge(n * sizeof(float)); /* values and one accumulator or copy */
    unsigned k;

    for (k = 0; o && k < optimizer_n_slots(o); k++)
        bytes += dt_block_charge(optimizer_slot_elements(o, k, n) * sizeof(float));
    if (where->racy)
        bytes += sizeof(struct shared_slice);
    return bytes + replicas * (sizeof(struct slice) + where->ranks * sizeof(struct push_row));
}

/* All slices but the last are of one size. Declarations are bounded: the sum fits (2^62). */
static uint64_t
variable_charge(const struct dt_declaration *d, const struct declared_place *where)
{
    uint64_t elements = dt_declaration_elements(d);
    uint32_t n = dt_n_slices(elements);
    struct optimizer o;
    bool known = declared_optimizer(d, &o, NULL) == DT_OK;

    if (n == 0)
        return 0;
    return (n - 1) * slice_charge(elements, 0, known ? &o : NULL, where) +
           slice_charge(elements, n - 1, known ? &o : NULL, where);
}

uint64_t
declared_charge(const struct dt_declaration *decls, uint32_t n, const struct declared_place *where)
{
    uint64_t bytes = 0;
    uint32_t i;

    for (i = 0; i < n; i++) {
        if (decls[i].task == where->task)
            bytes += variable_charge(&decls[i], where);
    }
    return bytes;
}

struct loads { /* while homes are chosen */
    uint64_t bytes[DT_MAX_SHARDS];
    uint64_t left; /* bytes of the slices that have no home yet */
    uint32_t last; /* home of the slice before */
};

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

/* A shard that has nothing yet is not begun for less than together_bytes. */
static uint32_t
next_home(const struct loads *l, const struct declared_place *where)
{
    uint32_t least = least_loaded(l->bytes, where->n_shards);

    if (l->bytes[l->last] < l->bytes[least] + where->together_bytes)
        return l->last;
    return l->bytes[least] == 0 && l->left < where->together_bytes ? l->last : least;
}

static bool
choose_homes(struct declared_variable *v, struct loads *l, const struct declared_place *where)
{
    uint32_t i;

    v->homes = malloc(v->n_slices ? v->n_slices : 1);
    if (!v->homes)
        return false;
    for (i = 0; i < v->n_slices; i++) {
        if (i == 0 || !where->whole)
            l->last = next_home(l, where);
        uint64_t bytes = dt_slice_elements(v->elements, i) * sizeof(float);

        v->homes[i] = (uint8_t)l->last;
        l->bytes[l->last] += bytes;
        l->left -= bytes;
    }
    return true;
}

bool
declared_make_slots(const struct optimizer *o, uint32_t n, struct dt_pool *pool,
                    struct dt_block **slots)
{
    unsigned i;
    size_t k;

    for (i = 0; i < optimizer_n_slots(o); i++) {
        size_t elements = optimizer_slot_elements(o, i, n);

        slots[i] = dt_block_create(pool, elements * sizeof(float));
        if (!slots[i])
            return false;
        for (k = 0; k < elements; k++)
            ((float *)slots[i]->data)[k] = optimizer_slot_start(o, i);
    }
    return true;
}

static bool
share_slices(struct declared_variable *v, struct dt_pool *pool)
{
    struct optimizer o;
    uint32_t i;

    v->shared = calloc(v->n_slices + 1, sizeof(*v->shared));
    if (!v->shared || declared_optimizer(&v->decl, &o, NULL) != DT_OK)
        return false;
    for (i = 0; i < v->n_slices; i++) {
        uint32_t n = dt_slice_elements(v->elements, i);
        struct shared_slice *s = &v->shared[i];

        s->values = dt_block_create(pool, n * sizeof(float));
        if (!s->values || !declared_make_slots(&o, n, pool, s->slots))
            return false;
    }
    return true;
}

static uint64_t
bytes_of(const struct dt_declaration *decls, uint32_t n, uint32_t task)
{
    uint64_t bytes = 0;
    uint32_t i;

    for (i = 0; i < n; i++)
        bytes += decls[i].task == task ? dt_declaration_elements(&decls[i]) * sizeof(float) : 0;
    return bytes;
}

struct declared *
declared_create(const struct dt_declaration *decls, uint32_t n, const struct declared_place *where,
                struct dt_pool *pool)
{
    struct declared *d = calloc(1, sizeof(*d) + n * sizeof(d->variables[0]));
    struct loads loads = {.left = bytes_of(decls, n, where->task)};
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
        if (decls[i].task != where->task)
            continue;
        v->n_slices = dt_n_slices(v->elements);
        d->n_slices += v->n_slices;
        if (!(where->racy ? share_slices(v, pool) : choose_homes(v, &loads, where))) {
            declared_destroy(d);
            return NULL;
        }
    }
    return d;
}

static void
unshare_slices(struct declared_variable *v)
{
    uint32_t i;
    unsigned k;

    for (i = 0; v->shared && i < v->n_slices; i++) {
        dt_block_unref(v->shared[i].values);
        for (k = 0; k < OPTIMIZER_MAX_SLOTS; k++)
            dt_block_unref(v->shared[i].slots[k]);
    }
    free(v->shared);
}

void
declared_destroy(struct declared *d)
{
    uint32_t i;

    if (!d)
        return;
    for (i = 0; i < d->n; i++) {
        free(d->variables[i].homes);
        unshare_slices(&d->variables[i]);
    }
    free(d);
}

enum dt_status
declared_optimizer(const struct dt_declaration *d, struct optimizer *out, struct dt_error *err)
{
    struct optimizer_param params[DT_MAX_OPTIMIZER_PARAMS];
    uint32_t i;

    for (i = 0; i < d->n_params; i++)
        params[i] = (struct optimizer_param){d->params[i].name, d->params[i].value};
    if (optimizer_init(out, d->optimizer, params, d->n_params, err) != DT_OK)
        return dt_fail_prefix(err, "variable %s", d->name);
    return DT_OK;
}
