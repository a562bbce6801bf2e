/*
 * overlap.c - an exchange under way while its gradient is computed. The loop's thread.
 */
#include "worker/train/overlap.h"

#include <math.h>

#include "worker/train/loop_state.h"

/* A variable's gradient is final: into the window, and off it goes. */
static void
send(void *arg, uint32_t variable, double loss)
{
    struct loop *l = arg;
    enum dtw_status s;

    if (!isfinite(loss))
        return; /* the loop sees it as well and gives up */
    window_add_variable(&l->window, variable, l->values[variable], l->gradients[variable]);
    window_close_variable(&l->window, variable, l->values[variable], l->gradients[variable]);
    if (l->under_way_status != DTW_OK)
        return;
    enum phase before = phases_enter(&l->phases, PHASE_WAIT);
    s = dtw_step_gradient(l->under_way, variable, l->gradients[variable], &l->err);
    phases_enter(&l->phases, before);
    if (s == DTW_NOT_FINITE)
        l->under_way_status = s;
}

bool
overlap_begin(struct loop *l, const struct loop_batch *batch, uint64_t step)
{
    uint64_t rows = l->plan.overlap ? batches_due(l->batches, step) : 0;

    if (rows == 0)
        return false;
    l->under_way_status = DTW_OK;
    phases_enter(&l->phases, PHASE_WAIT);
    enum dtw_status s = dtw_step_begin(l->plan.client, l->next, batch->n_rows + rows,
                                       batch->n_batches + 1, &l->under_way, &l->err);
    phases_enter(&l->phases, PHASE_OTHER);
    if (s != DTW_OK)
        return false; /* dtw_step will say the same */
    window_next_batch(&l->window);
    model_on_ready(l->plan.model, send, l);
    return true;
}

enum dtw_status
overlap_finish(struct loop *l, struct dtw_result *result)
{
    struct dtw_handle *h = l->under_way;

    if (l->under_way_status != DTW_OK) {
        overlap_cancel(l);
        return l->under_way_status;
    }
    l->under_way = NULL;
    return l->plan.link.ops->finish(l->plan.link.self, h, (const float *const *)l->gradients,
                                    l->next, result, &l->err);
}

void
overlap_cancel(struct loop *l)
{
    if (l->under_way)
        dtw_cancel(l->under_way);
    l->under_way = NULL;
}
