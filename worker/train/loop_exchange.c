/*
 * loop_exchange.c - what the ways of an exchange have in common: declarations, one push and pull, what became of it.
 *
 * Invariant: after an error `values` still hold a whole step. Threads: the loop's alone.
 */
#include "worker/train/loop_state.h"

/* A push was answered: what became of it. */
void
exchange_count(struct loop *l, const struct loop_batch *batch, const struct dtw_result *r)
{
    struct loop_result *out = &l->result;
    bool taken = batch->n_rows == 0 || r->accumulated + r->duplicate > 0;

    out->pushes++;
    out->accepted += taken;
    out->last.samples += batch->n_rows;
    if (taken && l->plan.rank < l->plan.workers)
        l->rows_taken += batch->n_rows;
    if (batch->n_rows == 0)
        return;
    out->last.partial += r->partial;
    out->last.stale += !taken && r->stale > 0;
    out->refused += !taken && r->stale == 0;
}

void
exchange_take_next(struct loop *l)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        float *whole = l->next[i];
        l->next[i] = l->values[i];
        l->values[i] = whole;
    }
    l->have_values = true;
}

static unsigned
server_params(const struct loop *l, bool is_bias, struct dtw_param *out)
{
    struct optimizer_param params[TRAIN_MAX_PARAMS];
    unsigned n;

    if (train_extras_are_local(l->plan.algorithm))
        return 0;
    n = train_extras_params(&l->plan.extras, true, is_bias, params);
    for (unsigned i = 0; i < n; i++)
        out[i] = (struct dtw_param){params[i].name, params[i].value};
    return n;
}

enum dtw_status
exchange_declare(struct loop *l)
{
    enum dtw_status s = DTW_OK;

    for (uint32_t i = 0; s == DTW_OK && i < l->n_variables; i++) {
        const struct model_variable *v = model_variable(l->plan.model, i);
        struct dtw_param params[TRAIN_MAX_PARAMS];
        struct dtw_variable d = {
            .name = v->name,
            .n_dims = v->n_dims,
            .shape = v->shape,
            .optimizer = l->plan.algorithm->server_optimizer,
            .lr = algorithm_has_server_rate(l->plan.algorithm) ? l->plan.lr : -1,
            .params = params,
            .n_params = server_params(l, v->is_bias, params),
            .init = v->init,
            .seed = l->plan.seed,
        };
        s = l->plan.link.ops->declare(l->plan.link.self, &d, &l->err);
    }
    return s;
}

void
exchange_fill(void *arg, unsigned index, float *values, uint64_t n)
{
    const struct loop *l = arg;

    (void)n;
    model_init(l->plan.model, index, values);
}

enum dtw_status
exchange_push_pull(struct loop *l, const struct loop_batch *batch, struct dtw_result *r)
{
    const struct link *k = &l->plan.link;
    const float *const *g = batch->n_rows > 0 ? (const float *const *)l->gradients : NULL;
    unsigned count = batch->n_batches;

    if (l->overlap.handle)
        return overlap_finish(l, r);
    /* psd sums count * (lr_k * g_k): a rank's rate counts once, however many replicas made its gradient */
    if (l->plan.algorithm->has_rank_rates && count > 1)
        count = 1;
    return k->ops->step(k->self, g, l->next, batch->n_rows, count, r, &l->err);
}
