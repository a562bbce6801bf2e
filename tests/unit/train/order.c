/*
 * order.c - the ranks partition every epoch exactly; late ranks add rows; golden values.
 */
#include "worker/train/order.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(order, .timeout = 120);

/* Every row of every epoch is read exactly once; part sizes differ by one at most. */
static void
expect_partition(const struct order *o, unsigned epochs)
{
    uint64_t steps = order_steps_per_epoch(o);
    unsigned *seen = calloc(o->n_rows, sizeof(*seen));
    uint64_t *rows = calloc(o->batch, sizeof(*rows));

    for (uint64_t s = 0; s < steps * epochs; s++) {
        uint32_t least = UINT32_MAX;
        uint32_t most = 0;
        for (uint32_t rank = 0; rank < o->workers; rank++) {
            uint32_t n = order_rows(o, s, rank, rows);
            cr_assert_eq(n, order_count(o, s, rank));
            cr_assert_leq(n, o->batch);
            least = n < least ? n : least;
            most = n > most ? n : most;
            for (uint32_t k = 0; k < n; k++) {
                cr_assert_lt(rows[k], o->n_rows);
                seen[rows[k]]++;
            }
        }
        cr_assert_leq(most - least, 1);
        if ((s + 1) % steps == 0) {
            for (uint64_t i = 0; i < o->n_rows; i++)
                cr_assert_eq(seen[i], (s + 1) / steps, "row %lu seen %u times", i, seen[i]);
        }
    }
    free(rows);
    free(seen);
}

Test(order, ranks_partition_every_epoch)
{
    static const struct order cases[] = {
        {1, 1001, 2, 10}, {1, 1001, 3, 10}, {5, 1000, 2, 10}, {5, 7, 3, 10},
        {5, 1, 4, 1},     {9, 60, 4, 16},   {9, 100, 1, 7},   {9, 1797, 5, 64},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_partition(&cases[i], 3);
}

Test(order, short_last_batch_is_split_evenly)
{
    struct order o = {1, 1001, 2, 10}; /* 50 full steps, one row is left */

    cr_expect_eq(order_steps_per_epoch(&o), 51);
    cr_expect_eq(order_count(&o, 49, 0), 10);
    cr_expect_eq(order_count(&o, 50, 0), 1);
    cr_expect_eq(order_count(&o, 50, 1), 0);
    cr_expect_eq(order_count(&o, 101, 1), 0);
    o = (struct order){1, 98, 3, 10}; /* 8 rows are left: 3, 3, 2 */
    cr_expect_eq(order_steps_per_epoch(&o), 4);
    cr_expect_eq(order_count(&o, 3, 0), 3);
    cr_expect_eq(order_count(&o, 3, 1), 3);
    cr_expect_eq(order_count(&o, 3, 2), 2);
}

Test(order, parts_in_order_of_rank_are_the_batch_of_one_worker)
{
    struct order many = {11, 1001, 4, 25};
    struct order one = {11, 1001, 1, 100};
    uint64_t joined[100];
    uint64_t alone[100];

    for (uint64_t s = 0; s < 22; s++) {
        uint32_t n = 0;
        for (uint32_t rank = 0; rank < 4; rank++)
            n += order_rows(&many, s, rank, joined + n);
        cr_assert_eq(order_rows(&one, s, 0, alone), n);
        cr_assert_eq(memcmp(joined, alone, n * sizeof(alone[0])), 0);
    }
}

Test(order, late_rank_reads_a_permutation_of_its_own)
{
    struct order o = {3, 103, 2, 10};
    unsigned seen[103] = {0};
    uint64_t rows[10];
    uint64_t other[10];

    for (uint64_t s = 0; s < 103; s++) { /* 1 030 rows: ten whole permutations */
        cr_assert_eq(order_count(&o, s, 2), 10);
        cr_assert_eq(order_rows(&o, s, 2, rows), 10);
        for (int k = 0; k < 10; k++) {
            cr_assert_lt(rows[k], 103);
            seen[rows[k]]++;
        }
    }
    for (int i = 0; i < 103; i++)
        cr_assert_eq(seen[i], 10);
    order_rows(&o, 0, 2, rows);
    order_rows(&o, 0, 3, other);
    cr_expect_neq(memcmp(rows, other, sizeof(rows)), 0);
    order_rows(&o, 0, 0, other);
    cr_expect_neq(memcmp(rows, other, sizeof(rows)), 0);
}

Test(order, late_rank_with_less_rows_than_a_batch)
{
    struct order o = {3, 4, 1, 10};
    uint64_t rows[10];

    cr_assert_eq(order_rows(&o, 5, 7, rows), 10);
    for (int k = 0; k < 10; k++)
        cr_expect_lt(rows[k], 4);
}

Test(order, no_rows_is_no_work)
{
    struct order o = {1, 0, 2, 10};
    uint64_t rows[10];

    cr_expect_eq(order_steps_per_epoch(&o), 0);
    cr_expect_eq(order_rows(&o, 3, 0, rows), 0);
    cr_expect_eq(order_rows(&o, 3, 9, rows), 0);
    cr_expect_eq(order_count(&o, 3, 0), 0);
}

Test(order, rows_are_those_of_permute)
{
    struct order o = {8, 60000, 3, 100};
    uint64_t rows[100];

    order_rows(&o, 201, 1, rows); /* step 1 of epoch 1 */
    for (uint64_t k = 0; k < 100; k++)
        cr_expect_eq(rows[k], order_permute(&o, 1, 300 + 100 + k));
}

/* If this fails, jobs of older versions cannot be resumed on the same rows: do not adapt the numbers. */
Test(order, golden_rows_of_a_late_rank)
{
    static const uint64_t expected[] = {418, 242, 951, 448, 93, 449};
    struct order o = {42, 1001, 2, 10};
    uint64_t rows[10];

    order_rows(&o, 3, 5, rows);
    for (int k = 0; k < 6; k++)
        cr_expect_eq(rows[k], expected[k]);
}

Test(order, a_round_of_more_batches_than_workers_is_shared_in_order_of_rank)
{
    for (uint32_t n = 0; n <= 9; n++) {
        for (uint32_t m = 1; m <= 4; m++) {
            uint32_t next = 0, parts = order_parts(n, m);

            for (uint32_t k = 0; k < m; k++) {
                struct order_share s = order_share(n, m, k);
                cr_expect_eq(s.first, next);
                cr_expect_eq(s.n, n > m ? n / m + (k < n % m) : 1);
                next += s.n;
            }
            cr_expect_eq(next, parts);
            cr_expect_eq(parts, n > m ? n : m);
            cr_expect_eq(order_share(n, m, m + 2).first, parts + 2, "a late rank has its own");
            cr_expect_eq(order_share(n, m, m + 2).n, 1);
        }
    }
}
