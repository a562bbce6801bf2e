/*
 * accumulator.c - divisors of the three reductions, and homes of slices.
 */
#include "psd/store/accumulator.h"

#include <criterion/criterion.h>
#include <string.h>

#include "psd/store/variable.h"

TestSuite(accumulator, .timeout = 40);

static float
reduce_two(enum dt_reduce reduce)
{
    struct dt_pool *pool = dt_pool_create();
    struct accumulator a = {0};
    float g1[1] = {2}, g2[1] = {8}, result;

    cr_assert(accumulator_add(&a, pool, reduce, g1, 1, 10, 1, 5)); /* 10 rows, 1 batch */
    cr_assert(accumulator_add(&a, pool, reduce, g2, 1, 30, 2, 9)); /* 30 rows, 2 batches */
    cr_assert_eq(a.opened_ms, 5);
    cr_assert_eq(a.n_pushed, 2);
    cr_assert(accumulator_reduce(&a, reduce, 1));
    result = *(float *)a.sum->data;
    accumulator_reset(&a);
    dt_pool_destroy(pool);
    return result;
}

Test(accumulator, mean_weighs_by_rows_count_by_batches_sum_does_not_divide)
{
    cr_assert_float_eq(reduce_two(DT_REDUCE_MEAN), (10 * 2 + 30 * 8) / 40., 1e-6);
    cr_assert_float_eq(reduce_two(DT_REDUCE_COUNT), (1 * 2 + 2 * 8) / 3., 1e-6);
    cr_assert_float_eq(reduce_two(DT_REDUCE_SUM), 1 * 2 + 2 * 8, 1e-6);
}

Test(accumulator, abstentions_alone_have_no_divisor)
{
    struct dt_pool *pool = dt_pool_create();
    struct accumulator a = {0};

    cr_assert(accumulator_add(&a, pool, DT_REDUCE_MEAN, NULL, 4, 0, 0, 1));
    cr_assert(!accumulator_reduce(&a, DT_REDUCE_MEAN, 4));
    cr_assert_null(a.sum);
    accumulator_reset(&a);
    dt_pool_destroy(pool);
}

static void
declare(struct dt_declaration *d, const char *name, uint64_t n, uint32_t task)
{
    memset(d, 0, sizeof(*d));
    strcpy(d->name, name);
    d->n_dims = 1;
    d->shape[0] = n;
    d->task = task;
    strcpy(d->optimizer, "sgd");
    d->n_params = 1;
    strcpy(d->params[0].name, "lr");
}

Test(accumulator, small_slices_stay_together)
{
    struct dt_declaration decls[5];
    struct declared *d;

    declare(&decls[0], "a", 100, 0);
    declare(&decls[1], "b", 28, 0); /* 512 bytes so far: as many as may be */
    declare(&decls[2], "c", 5, 0);
    declare(&decls[3], "d", DT_SLICE_ELEMENTS + 1,
            0); /* its first slice is with c, then shard 1 has more */
    declare(&decls[4], "e", 1, 0);
    d = declared_create(decls, 5, &(struct declared_place){.n_shards = 2, .together_bytes = 512},
                        NULL);
    cr_assert_not_null(d);
    cr_assert_eq(d->variables[0].homes[0], 0);
    cr_assert_eq(d->variables[1].homes[0], 0);
    cr_assert_eq(d->variables[2].homes[0], 1);
    cr_assert_eq(d->variables[3].homes[0], 1);
    cr_assert_eq(d->variables[3].homes[1], 0);
    cr_assert_eq(d->variables[4].homes[0], 0);
    declared_destroy(d);
}

Test(accumulator, no_shard_is_begun_for_little)
{
    static const uint64_t left[] = {122, 123}; /* 508 and 512 bytes behind the large variable */
    struct dt_declaration decls[4];
    struct declared *d;

    for (uint32_t i = 0; i < 2; i++) {
        declare(&decls[0], "large", 1000, 0);
        declare(&decls[1], "b", 5, 0);
        declare(&decls[2], "elsewhere", 1000, 1);
        declare(&decls[3], "c", left[i], 0);
        d = declared_create(decls, 4,
                            &(struct declared_place){.n_shards = 2, .together_bytes = 512}, NULL);
        cr_assert_not_null(d);
        cr_expect_eq(d->variables[0].homes[0], 0);
        cr_expect_eq(d->variables[1].homes[0], i);
        cr_expect_eq(d->variables[3].homes[0], i);
        declared_destroy(d);
    }
}

Test(accumulator, homes_are_least_bytes_then_lowest_index)
{
    struct dt_declaration decls[3];
    struct declared *d;

    declare(&decls[0], "a", DT_SLICE_ELEMENTS + 1, 0); /* two slices: 1 MiB and 4 bytes */
    declare(&decls[1], "b", 10, 1);                    /* of another ps task */
    declare(&decls[2], "c", 5, 0);
    d = declared_create(decls, 3, &(struct declared_place){.n_shards = 3}, NULL);
    cr_assert_not_null(d);
    cr_assert_eq(d->n_slices, 3);
    cr_assert_eq(d->variables[0].homes[0], 0);
    cr_assert_eq(d->variables[0].homes[1], 1);
    cr_assert_eq(d->variables[1].n_slices, 0);
    cr_assert_eq(d->variables[2].homes[0], 2);
    declared_destroy(d);
}
