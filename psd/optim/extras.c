/*
 * extras.c - clip and weight decay as parameters; schedule.c has those of the rate. Any thread.
 */
#include "psd/optim/extras.h"

#include <math.h>
#include <string.h>

#include "psd/optim/kernels.h"
#include "psd/optim/racy.h"

static enum dt_status
take(float *field, const char *name, float value, struct dt_error *err)
{
    if (*field > 0)
        return dt_fail(err, DT_R_BAD_VALUE, "%s is given twice", name);
    if (!(value > 0) || isinf(value))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "%s is %g, must be finite and above 0 (leave it out for none)", name,
                       (double)value);
    *field = value;
    return DT_OK;
}

bool
extras_take(struct extras *e, const char *name, float value, enum dt_status *status,
            struct dt_error *err)
{
    if (!strcmp(name, "clip_value"))
        *status = take(&e->clip_value, name, value, err);
    else if (!strcmp(name, "weight_decay"))
        *status = take(&e->weight_decay, name, value, err);
    else
        return schedule_take(&e->schedule, name, value, status, err);
    return true;
}

/* The clipped gradient, or g itself. */
static const void *
clipped(const struct extras *e, float *out, const void *g, size_t n)
{
    if (!(e->clip_value > 0))
        return g;
    kernel_clip(out, g, e->clip_value, n);
    return out;
}

void
extras_condition(const struct extras *e, float *out, const void *g, const float *w, size_t n)
{
    const void *now = clipped(e, out, g, n);

    if (e->weight_decay > 0)
        kernel_decay(out, now, w, e->weight_decay, n);
}

void
extras_condition_racy(const struct extras *e, float *out, const void *g, const float *w, size_t n)
{
    const void *now = clipped(e, out, g, n);

    if (e->weight_decay > 0)
        racy_decay(out, now, w, e->weight_decay, n);
}
