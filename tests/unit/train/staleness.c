/* staleness.c - exact counts, the overflow bucket, percentiles by nearest rank, the merge, and JSON. */
#include <criterion/criterion.h>
#include <string.h>

#include "worker/train/staleness_json.h"

TestSuite(staleness, .timeout = 60);

Test(staleness, without_a_push_everything_is_zero)
{
    struct staleness s = {0};

    cr_expect_eq(staleness_count(&s), 0);
    cr_expect_eq(staleness_mean(&s), 0);
    cr_expect_eq(staleness_percentile(&s, 0.5), 0);
    cr_expect_eq(staleness_percentile(&s, 1), 0);
    cr_expect_eq(staleness_n_buckets(&s), 0);
}

Test(staleness, percentiles_are_the_nearest_rank)
{
    struct staleness s = {0};

    for (uint64_t v = 1; v <= 60; v++) /* 1..60, once each */
        staleness_add(&s, v);
    cr_expect_eq(staleness_count(&s), 60);
    cr_expect_float_eq(staleness_mean(&s), 30.5, 1e-12);
    cr_expect_eq(staleness_percentile(&s, 0.5), 30);
    cr_expect_eq(staleness_percentile(&s, 0.99), 60); /* rank 59.4 is the 60th */
    cr_expect_eq(staleness_percentile(&s, 0.98), 59); /* rank 58.8 is the 59th */
    cr_expect_eq(s.max, 60);
    cr_expect_eq(staleness_n_buckets(&s), 61);
}

Test(staleness, one_in_a_hundred_is_not_in_p99)
{
    struct staleness s = {0};

    for (unsigned i = 0; i < 99; i++)
        staleness_add(&s, 2);
    staleness_add(&s, 40);
    cr_expect_eq(staleness_percentile(&s, 0.99), 2);
    cr_expect_eq(staleness_percentile(&s, 1), 40);
}

Test(staleness, what_is_large_shares_a_bucket_and_keeps_its_maximum)
{
    struct staleness s = {0};

    staleness_add(&s, 63);
    staleness_add(&s, 64);
    staleness_add(&s, 1000000);
    cr_expect_eq(s.histogram[63], 1);
    cr_expect_eq(s.histogram[STALENESS_EXACT], 2);
    cr_expect_eq(staleness_percentile(&s, 0.3), 63);
    cr_expect_eq(staleness_percentile(&s, 0.5), 1000000, "in the overflow bucket: the maximum");
    cr_expect_float_eq(staleness_mean(&s), 1000127.0 / 3, 1e-6);
}

Test(staleness, merged_is_as_if_one_had_counted)
{
    struct staleness a = {0}, b = {0}, both = {0};

    for (uint64_t v = 0; v < 200; v += 3) {
        staleness_add(v % 2 ? &a : &b, v);
        staleness_add(&both, v);
    }
    staleness_merge(&a, &b);
    cr_expect_arr_eq(a.histogram, both.histogram, sizeof(a.histogram));
    cr_expect_eq(a.sum, both.sum);
    cr_expect_eq(a.max, 198);
}

Test(staleness, survives_the_way_through_json)
{
    struct staleness s = {0}, back;

    for (uint64_t v = 0; v < 30; v++)
        staleness_add(&s, v % 7);
    json_t *o = staleness_json(&s);
    cr_assert(json_is_object(o));
    cr_expect_eq(json_integer_value(json_object_get(o, "pushes")), 30);
    cr_expect_eq(json_integer_value(json_object_get(o, "max")), 6);
    cr_expect_eq(json_array_size(json_object_get(o, "histogram")), 7, "no zeros behind the last");
    char *text = json_dumps(o, JSON_REAL_PRECISION(10));
    json_t *read = json_loads(text, 0, NULL);
    cr_expect(staleness_from_json(&back, read));
    cr_expect_arr_eq(back.histogram, s.histogram, sizeof(s.histogram));
    cr_expect_eq(back.sum, s.sum);
    cr_expect_eq(back.max, s.max);
    free(text);
    json_decref(read);
    json_decref(o);
}

Test(staleness, null_is_none)
{
    struct staleness s;
    json_t *o = staleness_json(NULL);

    cr_expect(json_is_null(o));
    cr_expect_not(staleness_from_json(&s, o));
    cr_expect_not(staleness_from_json(&s, NULL));
    cr_expect_eq(staleness_count(&s), 0);
}
