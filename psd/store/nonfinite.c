/*
 * nonfinite.c - looks for NaN and Inf in a slice's state after suspicious updates, and now and then. Runs on the
 * slice's shard.
 */
#include "psd/store/nonfinite.h"

#include "proto/base/finite.h"
#include "psd/optim/racy.h"
#include "psd/store/job.h"
#include "psd/store/slice.h"

void
nonfinite_push(struct nonfinite *f, uint32_t rank, float largest)
{
    if (f->found || largest < f->largest)
        return;
    f->rank = rank;
    f->largest = largest;
}

static bool
is_due(const struct nonfinite *f, uint64_t version)
{
    return f->largest >= NONFINITE_LARGE || version % NONFINITE_EVERY == 0 ||
           (version < NONFINITE_EVERY && (version & (version - 1)) == 0);
}

static bool
is_finite(const struct slice *s, const struct dt_block *b, size_t n)
{
    return s->shared ? racy_is_finite(b->data, n) : dt_is_finite(b->data, n);
}

/* Returns the slot, OPTIMIZER_MAX_SLOTS for the values, or -1. */
static int
find(const struct slice *s)
{
    const struct optimizer *o = &s->variable->optimizer;
    unsigned i;

    if (!is_finite(s, s->values, s->n))
        return OPTIMIZER_MAX_SLOTS;
    for (i = 0; i < optimizer_n_slots(o); i++) {
        if (!is_finite(s, s->slots[i], optimizer_slot_elements(o, i, s->n)))
            return (int)i;
    }
    return -1;
}

void
nonfinite_update(struct slice *s, struct job *job, uint64_t version, uint64_t step)
{
    struct nonfinite *f = &s->nonfinite;
    int where;

    if (f->found)
        return;
    where = is_due(f, version) ? find(s) : -1;
    if (where < 0) {
        f->largest = 0;
        return;
    }
    f->found = true;
    f->slot = (uint8_t)where;
    f->step = step;
    job->has_nonfinite = true;
}
