/*
 * score.c - load both sets; evaluate values on both. Threads: main alone.
 */
#include "worker/cli/score.h"

#include <math.h>

enum dt_status
data_load(struct data *d, const char *path, const char *model, const struct settings *s,
          struct dt_error *err)
{
    struct dataset_options o = {
        .label = s->label, .header = (enum dataset_header)s->header, .target = model_target(model)};
    enum dt_status r = dataset_load_with(&o, path, &d->train, &d->test, err);

    d->loaded = r == DT_OK;
    if (d->loaded && d->train.n_rows == 0)
        return dt_fail(err, DT_E_DATA, "%s: there are no training rows", path);
    return r;
}

void
data_deinit(struct data *d)
{
    if (d->loaded) {
        dataset_deinit(&d->train);
        dataset_deinit(&d->test);
    }
    d->loaded = false;
}

void
data_score(const struct data *d, struct model *m, const float *const *values, struct score *out)
{
    const struct model_score none = {NAN, NAN};

    out->train = out->test = none;
    model_evaluate(m, d->loaded ? &d->train : NULL, values, &out->train);
    if (d->loaded && d->test.n_rows > 0)
        model_evaluate(m, &d->test, values, &out->test);
}
