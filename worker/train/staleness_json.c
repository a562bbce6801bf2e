/*
 * staleness_json.c - counts of staleness to JSON and back (run reads its workers'). Pure; any thread.
 */
#include "worker/train/staleness_json.h"

#include <math.h>
#include <string.h>

static json_t *
histogram(const struct staleness *s)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < staleness_n_buckets(s); i++)
        json_array_append_new(list, json_integer((json_int_t)s->histogram[i]));
    return list;
}

json_t *
staleness_json(const struct staleness *s)
{
    if (!s)
        return json_null();
    return json_pack("{s:I, s:f, s:I, s:I, s:I, s:o}", "pushes", (json_int_t)staleness_count(s),
                     "mean", staleness_mean(s), "p50", (json_int_t)staleness_percentile(s, 0.50),
                     "p99", (json_int_t)staleness_percentile(s, 0.99), "max", (json_int_t)s->max,
                     "histogram", histogram(s));
}

static uint64_t
count(const json_t *v)
{
    json_int_t n = json_integer_value(v);

    return n > 0 ? (uint64_t)n : 0;
}

bool
staleness_from_json(struct staleness *s, const json_t *o)
{
    const json_t *list = json_object_get(o, "histogram");

    memset(s, 0, sizeof(*s));
    if (!json_is_array(list) || json_array_size(list) > STALENESS_BUCKETS)
        return false;
    for (unsigned i = 0; i < json_array_size(list); i++)
        s->histogram[i] = count(json_array_get(list, i));
    s->max = count(json_object_get(o, "max"));
    s->sum = round(json_number_value(json_object_get(o, "mean")) * (double)staleness_count(s));
    return true;
}
