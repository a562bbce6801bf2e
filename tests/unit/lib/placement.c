/*
 * placement.c - greedy, round robin and pinned placement of variables over ps tasks.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "worker/lib/placement.h"

TestSuite(placement, .timeout = 20);

static void
expect(struct placement *p, const uint64_t *sizes, const uint32_t *tasks, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof(name), "v%u", i);
        cr_assert_eq(placement_choose(p, name, name, sizes[i]), tasks[i], "variable %u", i);
    }
}

Test(placement, greedy_takes_the_fewest_bytes_and_the_lowest_index_on_ties)
{
    static const uint64_t sizes[] = {10, 4, 4, 3, 3};
    static const uint32_t tasks[] = {0, 1, 2, 1, 2};
    struct placement p = {.policy = PLACEMENT_GREEDY};

    cr_assert(placement_init(&p, 3));
    expect(&p, sizes, tasks, 5);
    placement_deinit(&p);
}

Test(placement, round_robin_looks_at_the_order_alone)
{
    static const uint64_t sizes[] = {10, 4, 4, 3, 3};
    static const uint32_t tasks[] = {0, 1, 2, 0, 1};
    struct placement p = {.policy = PLACEMENT_ROUND_ROBIN};

    cr_assert(placement_init(&p, 3));
    expect(&p, sizes, tasks, 5);
    placement_deinit(&p);
}

/* A pinned variable counts in the bytes but does not take a turn. */
Test(placement, a_pin_comes_before_the_policy)
{
    static const uint64_t sizes[] = {10, 4, 4, 3, 3};
    static const uint32_t greedy[] = {2, 0, 1, 0, 1};
    static const uint32_t in_turn[] = {2, 0, 1, 2, 0};
    struct placement p = {.policy = PLACEMENT_GREEDY};

    cr_assert(placement_init(&p, 3));
    cr_assert(placement_pin(&p, "v0", 1));
    cr_assert(placement_pin(&p, "v0", 2)); /* the last one counts */
    cr_assert_str_eq(placement_unused_pin(&p), "v0");
    expect(&p, sizes, greedy, 5);
    cr_assert_null(placement_unused_pin(&p));
    placement_deinit(&p);

    p = (struct placement){.policy = PLACEMENT_ROUND_ROBIN};
    cr_assert(placement_init(&p, 3));
    cr_assert(placement_pin(&p, "v0", 2));
    expect(&p, sizes, in_turn, 5);
    placement_deinit(&p);
}
