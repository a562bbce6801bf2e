/* algorithm.c - the rows of the table hang together. */
#include <criterion/criterion.h>

#include "psd/optim/optimizer.h"
#include "worker/train/algorithm.h"

TestSuite(algorithm, .timeout = 40);

static void
expect_rule(const char *name)
{
    struct optimizer o;
    struct optimizer_param lr = {"lr", 0.1f};
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(optimizer_init(&o, name, &lr, optimizer_has_rate(name), &err), DT_OK, "%s",
                 err.text);
}

static void
expect_whole(const struct algorithm *a)
{
    cr_expect_geq(a->window, 1);
    cr_expect_not_null(a->help);
    cr_expect_eq(algorithm_needs_ps(a), a->server_optimizer != NULL, "%s", a->name);
    cr_expect_eq(algorithm_needs_ps(a), a->exchange != EXCHANGE_NONE, "%s", a->name);
    cr_expect(a->locking == LOCKING_SLICE || a->consistency == CONSISTENCY_ASYNC, "%s", a->name);
    cr_expect(a->lr > 0, "%s", a->name);
    if (algorithm_has_server_rate(a))
        cr_expect_eq(a->local_lr > 0, a->local_optimizer != NULL, "%s", a->name);
    else
        cr_expect_eq(a->local_lr, 0, "%s has one rate", a->name);
    if (a->server_optimizer) {
        expect_rule(a->server_optimizer);
        cr_expect_eq(optimizer_has_rate(a->server_optimizer), algorithm_has_server_rate(a), "%s",
                     a->name);
    }
    if (a->local_optimizer)
        expect_rule(a->local_optimizer);
    cr_expect_eq(a->alpha > 0 || a->alpha_share > 0, algorithm_is_elastic(a), "%s", a->name);
    cr_expect_eq(a->momentum > 0, a->lookahead != LOOKAHEAD_NONE, "%s", a->name);
    cr_expect(a->order != ORDER_WITHIN || algorithm_is_elastic(a), "%s", a->name);
    cr_expect(a->local_optimizer == NULL || a->lookahead == LOOKAHEAD_NONE, "%s", a->name);
}

Test(algorithm, every_row_is_found_by_its_name_and_is_whole)
{
    unsigned n = 0;

    for (const struct algorithm *a; (a = algorithm_at(n)) != NULL; n++) {
        cr_expect_eq(algorithm_find(a->name), a, "%s stands twice in the table", a->name);
        cr_expect_eq(algorithm_find_profile(a->name, 0), a);
        expect_whole(a);
    }
    cr_expect_geq(n, 2);
}

Test(algorithm, every_variant_is_found_by_its_name_and_profile)
{
    const struct algorithm *a;
    unsigned n = 0;

    for (; (a = algorithm_variant_at(n)) != NULL; n++) {
        cr_expect_eq(algorithm_find_profile(a->name, a->profiles), a, "%s stands twice", a->name);
        cr_expect_eq(algorithm_find(a->name)->profiles & a->profiles, 0, "%s", a->name);
        cr_expect(*algorithm_profile_name(a->profiles), "one bit");
        expect_whole(a);
    }
    cr_expect_eq(n, 5);
}

static void
expect_profiles(const char *name, unsigned profiles)
{
    for (unsigned i = 0; i < ALGORITHM_N_PROFILES; i++)
        cr_expect_eq(algorithm_find_profile(name, 1u << i) != NULL, profiles >> i & 1, "%s %s",
                     name, algorithm_profile_name(1u << i));
}

Test(algorithm, names_have_the_variants_that_were_published)
{
    expect_profiles("ssgd", PROFILE_GUIDE);
    expect_profiles("hogwild", PROFILE_GUIDE);
    expect_profiles("downpour", PROFILE_GUIDE | PROFILE_DIST_KERAS | PROFILE_PAPER);
    expect_profiles("agn", PROFILE_GUIDE | PROFILE_DIST_KERAS);
    expect_profiles("dynsgd", PROFILE_DIST_KERAS);
    expect_profiles("easgd", PROFILE_PAPER);
    expect_profiles("aeasgd", PROFILE_PAPER | PROFILE_DIST_KERAS);
    expect_profiles("eamsgd", PROFILE_PAPER | PROFILE_DIST_KERAS);
    expect_profiles("local", 0);
    cr_expect_null(algorithm_find_profile("gossip", PROFILE_GUIDE));
    cr_expect_str_eq(algorithm_profile_name(PROFILE_DIST_KERAS), "dist-keras");
}

Test(algorithm, ssgd_and_local_are_what_they_say)
{
    const struct algorithm *ssgd = algorithm_find("ssgd");
    const struct algorithm *local = algorithm_find("local");

    cr_assert_not_null(ssgd);
    cr_assert_not_null(local);
    cr_expect_eq(ssgd->consistency, CONSISTENCY_SYNC);
    cr_expect_eq(ssgd->window, 1);
    cr_expect_null(ssgd->local_optimizer);
    cr_expect_str_eq(ssgd->server_optimizer, "sgd");
    cr_expect_eq(local->consistency, CONSISTENCY_LOCAL);
    cr_expect_str_eq(local->local_optimizer, "sgd");
}

Test(algorithm, hogwild_is_alone_without_locks)
{
    const struct algorithm *hogwild = algorithm_find("hogwild");

    cr_assert_not_null(hogwild);
    cr_expect_eq(hogwild->consistency, CONSISTENCY_ASYNC);
    cr_expect_eq(hogwild->locking, LOCKING_NONE);
    cr_expect_eq(hogwild->window, 1);
    cr_expect_null(hogwild->local_optimizer);
    cr_expect_str_eq(hogwild->server_optimizer, "sgd");
    for (unsigned i = 0; algorithm_at(i); i++)
        cr_expect_eq(algorithm_at(i)->locking == LOCKING_NONE, algorithm_at(i) == hogwild);
}

Test(algorithm, ssgd_diff_lr_is_alone_with_rates_of_ranks)
{
    const struct algorithm *diff = algorithm_find("ssgd-diff-lr");

    cr_assert_not_null(diff);
    cr_expect_eq(diff->consistency, CONSISTENCY_SYNC);
    cr_expect_eq(diff->window, 1);
    cr_expect_null(diff->local_optimizer);
    cr_expect_str_eq(diff->server_optimizer, "sgd");
    cr_expect_float_eq(diff->lr, algorithm_find("ssgd")->lr, 0);
    for (unsigned i = 0; algorithm_at(i); i++)
        cr_expect_eq(algorithm_at(i)->has_rank_rates, algorithm_at(i) == diff);
}

Test(algorithm, an_unknown_name_is_not_found)
{
    cr_expect_null(algorithm_find("gossip"));
    cr_expect_null(algorithm_find(""));
    cr_expect_null(algorithm_at(1000));
}
