/*
 * train_extras.c - extras as parameters of a rule, and clipping by norm. Any thread.
 */
#include "worker/train/train_extras.h"

#include <math.h>
#include <string.h>

#include "psd/optim/kernels.h"

bool
train_extras_are_local(const struct algorithm *row)
{
    return !row->server_optimizer || !optimizer_has_rate(row->server_optimizer);
}

unsigned
train_extras_params(const struct train_extras *e, bool scheduled, bool is_bias,
                    struct optimizer_param *out)
{
    unsigned n = scheduled ? e->n_schedule : 0;

    memcpy(out, e->schedule, n * sizeof(*out));
    if (e->clip_value > 0)
        out[n++] = (struct optimizer_param){"clip_value", e->clip_value};
    if (e->weight_decay > 0 && !is_bias)
        out[n++] = (struct optimizer_param){"weight_decay", e->weight_decay};
    return n;
}

/* g * clip_norm / max(norm, clip_norm); a gradient within the norm keeps its bits. */
void
train_extras_clip_norm(const struct train_extras *e, const struct model *m, float *const *gradients)
{
    double squares = 0, norm;

    if (!(e->clip_norm > 0))
        return;
    for (uint32_t i = 0; i < model_n_variables(m); i++)
        squares += kernel_square_sum(gradients[i], model_variable(m, i)->elements);
    norm = sqrt(squares);
    if (!(norm > (double)e->clip_norm))
        return;
    for (uint32_t i = 0; i < model_n_variables(m); i++)
        kernel_scale(gradients[i], gradients[i], (float)((double)e->clip_norm / norm),
                     model_variable(m, i)->elements);
}
