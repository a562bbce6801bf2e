/*
 * membership.c - which steps count a rank.
 */
#include "psd/store/membership.h"

#include <criterion/criterion.h>

TestSuite(membership, .timeout = 40);

Test(membership, expected_ranks_count_from_step_0)
{
    struct membership m;

    cr_assert(membership_init(&m, 2));
    cr_assert(membership_counts(&m, 0, 0) && membership_counts(&m, 1, 1000));
    cr_assert(!membership_counts(&m, 2, 0));
    cr_assert_eq(membership_next_after(&m, 5), MEMBERSHIP_OPEN, "nobody is awaited");
    membership_deinit(&m);
}

Test(membership, join_counts_from_its_step_and_strikes_before)
{
    struct membership m;

    membership_init(&m, 1);
    membership_join(&m, 0, 7);
    cr_assert(!membership_counts(&m, 0, 6) && membership_counts(&m, 0, 7));
    cr_assert_eq(membership_next_after(&m, 3), 7);
    membership_join(&m, 9, 5);
    cr_assert_eq(membership_next_after(&m, 3), 5);
    membership_deinit(&m);
}

Test(membership, leave_counts_up_to_the_last_step)
{
    struct membership m;

    membership_init(&m, 2);
    membership_leave(&m, 0, 4);
    cr_assert(membership_counts(&m, 0, 4) && !membership_counts(&m, 0, 5));
    cr_assert(membership_has_left(&m, 0) && !membership_has_left(&m, 1));
    membership_leave(&m, 1, UINT64_MAX);
    cr_assert(!membership_counts(&m, 1, 0), "left without any step");
    membership_deinit(&m);
}

/* Found by the property test: the LEAVE of a later life that never joined stretched the first one. */
Test(membership, a_second_leave_stretches_nothing)
{
    struct membership m;

    membership_init(&m, 1);
    membership_leave(&m, 0, 1);
    membership_leave(&m, 0, 9);
    cr_assert(!membership_counts(&m, 0, 5));
    membership_deinit(&m);
}

Test(membership, a_struck_rank_counts_nowhere_until_it_joins)
{
    struct membership m;

    membership_init(&m, 1);
    membership_strike(&m, 0);
    cr_assert(!membership_counts(&m, 0, 0));
    membership_leave(&m, 0, 3);
    cr_assert(!membership_counts(&m, 0, 2));
    membership_join(&m, 0, 4);
    cr_assert(membership_counts(&m, 0, 4) && !membership_has_left(&m, 0));
    membership_deinit(&m);
}
