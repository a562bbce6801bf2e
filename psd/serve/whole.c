/*
 * whole.c - what excludes updates of a variable: its slices have one home and come in one message, which the shard
 * takes in one go. Runs on the shard's thread.
 */
#include "psd/serve/whole.h"

static bool
is_covered(const struct job *job, const struct dt_data *m, uint32_t item, bool is_push)
{
    const struct dt_item *it = &m->items[item];
    uint32_t i, n = 0;

    for (i = 0; i < m->n_items; i++) {
        const struct dt_item *other = &m->items[i];

        if (other->variable != it->variable)
            continue;
        n++;
        if ((i != item && other->slice == it->slice) || (is_push && other->version != it->version))
            return false;
    }
    return n == job->variables[it->variable].n_slices;
}

bool
whole_is_covered(const struct job *job, const struct dt_data *m, bool is_push)
{
    uint32_t i;

    for (i = 0; job->params.locking == DT_LOCK_VARIABLE && i < m->n_items; i++) {
        if (!is_covered(job, m, i, is_push))
            return false;
    }
    return true;
}
