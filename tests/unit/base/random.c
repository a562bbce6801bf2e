/*
 * random.c - ids differ, are not 0, and every byte asked for is written.
 */
#include "proto/base/random.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(random, .timeout = 40);

Test(random, ids_differ)
{
    enum { N = 500 };
    uint64_t ids[N];
    int i, k;

    for (i = 0; i < N; i++) {
        ids[i] = dt_random_u64();
        cr_assert_neq(ids[i], 0);
        for (k = 0; k < i; k++)
            cr_assert_neq(ids[k], ids[i]);
    }
}

Test(random, fills_all_and_only_what_was_asked)
{
    unsigned char bytes[1000], seen[1000] = {0};
    int round;
    unsigned i;

    for (round = 0; round < 40; round++) {
        memset(bytes, 0, sizeof(bytes));
        dt_random_bytes(bytes, 999);
        for (i = 0; i < 1000; i++)
            seen[i] |= bytes[i];
    }
    for (i = 0; i < 999; i++)
        cr_assert_neq(seen[i], 0, "byte %u", i);
    cr_assert_eq(seen[999], 0);
    dt_random_bytes(NULL, 0);
}
