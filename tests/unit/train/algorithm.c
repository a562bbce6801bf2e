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

    cr_expect_eq(optimizer_init(&o, name, &lr, 1, &err), DT_OK, "%s", err.text);
}

Test(algorithm, every_row_is_found_by_its_name_and_is_whole)
{
    unsigned n = 0;

    for (const struct algorithm *a; (a = algorithm_at(n)) != NULL; n++) {
        cr_expect_eq(algorithm_find(a->name), a, "%s stands twice in the table", a->name);
        cr_expect_geq(a->window, 1);
        cr_expect_eq(algorithm_needs_ps(a), a->server_optimizer != NULL, "%s", a->name);
        cr_expect_eq(algorithm_needs_ps(a), a->exchange != EXCHANGE_NONE, "%s", a->name);
        if (a->server_optimizer)
            expect_rule(a->server_optimizer);
        if (a->local_optimizer)
            expect_rule(a->local_optimizer);
    }
    cr_expect_geq(n, 2);
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

Test(algorithm, an_unknown_name_is_not_found)
{
    cr_expect_null(algorithm_find("gossip"));
    cr_expect_null(algorithm_find(""));
    cr_expect_null(algorithm_at(1000));
}
