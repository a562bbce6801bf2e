/*
 * phases_json.c - shares of time to JSON and back (run reads its workers'). Pure; any thread.
 */
#include "worker/train/phases_json.h"

#include <math.h>

json_t *
phases_json(const double seconds[N_PHASES])
{
    static const enum phase order[] = {PHASE_COMPUTE, PHASE_PUSH, PHASE_WAIT, PHASE_OTHER};
    double shares[N_PHASES];
    json_t *o;

    if (!phases_shares(seconds, shares))
        return json_null();
    o = json_object();
    for (unsigned i = 0; i < N_PHASES; i++)
        json_object_set_new(o, phase_name(order[i]), json_real(shares[order[i]]));
    return o;
}

void
phases_from_json(double seconds[N_PHASES], const json_t *o, double sum)
{
    for (unsigned i = 0; i < N_PHASES; i++) {
        double share = json_number_value(json_object_get(o, phase_name(i)));
        seconds[i] = isfinite(sum) && share > 0 ? share * sum : 0;
    }
}
