/*
 * loop_local.c - no exchange: one process alone, its values its own. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

static enum dtw_status
local_begin(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++)
        model_init(l->plan.model, i, l->values[i]);
    l->have_values = true;
    return DTW_OK;
}

static enum dtw_status
local_step(struct loop *l, const struct loop_batch *batch)
{
    struct dtw_result applied = {.accumulated = 1};

    exchange_count(l, batch, &applied);
    l->step += batch->n_steps;
    return DTW_OK;
}

const struct loop_exchange loop_exchange_local = {local_begin, local_step, NULL, NULL, NULL};
