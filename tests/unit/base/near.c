/* near.c - which known name is suggested for a wrong one. */
#include <criterion/criterion.h>
#include <string.h>

#include "proto/base/near.h"

TestSuite(near, .timeout = 30);

static const char *
nearest(const char *name, const char *const *known, size_t n_known)
{
    const char *found = NULL;
    struct dt_near n;

    dt_near_init(&n, name);
    for (size_t i = 0; i < n_known; i++) {
        if (dt_near_offer(&n, known[i]))
            found = known[i];
    }
    return found;
}

static void
expect_nearest(const char *name, const char *wanted)
{
    static const char *const known[] = {"status", "placement", "kick", "shutdown", "lr"};
    const char *found = nearest(name, known, 5);

    if (wanted)
        cr_expect_str_eq(found ? found : "nothing", wanted, "%s", name);
    else
        cr_expect_null(found, "%s: %s", name, found);
}

Test(near, slips_of_the_hand)
{
    expect_nearest("stauts", "status");
    expect_nearest("statu", "status");
    expect_nearest("kcik", "kick");
    expect_nearest("shut-down", "shutdown");
    expect_nearest("place", "placement");
    expect_nearest("lrr", "lr");
}

Test(near, what_is_far_is_not_suggested)
{
    char longest[200];

    expect_nearest("xyzzy", NULL);
    expect_nearest("", NULL);
    expect_nearest("l", NULL); /* too short to tell */
    memset(longest, 's', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    expect_nearest(longest, NULL);
    cr_expect_null(nearest("status", (const char *const[]){longest}, 1));
}
