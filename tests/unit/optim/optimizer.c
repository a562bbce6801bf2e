/*
 * optimizer.c - the table of rules: slots, and every refusal. Values: golden.c and reference.c.
 */
#include "psd/optim/optimizer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

TestSuite(optimizer, .timeout = 120);

static struct optimizer
sgd(float lr)
{
    struct optimizer_param p = {"lr", lr};
    struct optimizer o;
    struct dt_error err;

    cr_assert_eq(optimizer_init(&o, "sgd", &p, 1, &err), DT_OK, "%s", err.text);
    return o;
}

static void
has_slots(const char *rule, unsigned n_params, unsigned n, const char *const *names,
          const float *starts, const size_t *elements)
{
    struct optimizer_param lr = {"lr", .1f};
    struct optimizer o;
    unsigned i;

    cr_assert_eq(optimizer_init(&o, rule, &lr, n_params, NULL), DT_OK);
    cr_expect_eq(optimizer_n_slots(&o), n);
    for (i = 0; i < n; i++) {
        cr_expect_str_eq(optimizer_slot_name(&o, i), names[i]);
        cr_expect_eq(optimizer_slot_start(&o, i), starts[i]);
        cr_expect_eq(optimizer_slot_elements(&o, i, 1000), elements[i]);
    }
}

Test(optimizer, slots)
{
    static const char *const adam[] = {"m", "v", "beta1_power", "beta2_power"};

    has_slots("sgd", 1, 0, NULL, NULL, NULL);
    has_slots("add-damped", 0, 0, NULL, NULL, NULL);
    has_slots("add", 0, 0, NULL, NULL, NULL);
    has_slots("assign", 0, 0, NULL, NULL, NULL);
    has_slots("adagrad", 1, 1, (const char *const[]){"accumulator"}, (const float[]){.1f},
              (const size_t[]){1000});
    has_slots("adam", 1, 4, adam, (const float[]){0, 0, .9f, .999f},
              (const size_t[]){1000, 1000, 1, 1});
}

Test(optimizer, start_values_follow_the_parameters)
{
    const struct optimizer_param adagrad[] = {{"initial_accumulator", .5f}, {"lr", 1}},
                                 adam[] = {{"lr", 1}, {"beta2", .75f}, {"beta1", .25f}};
    struct optimizer o;

    cr_assert_eq(optimizer_init(&o, "adagrad", adagrad, 2, NULL), DT_OK);
    cr_expect_eq(optimizer_slot_start(&o, 0), .5f);
    cr_assert_eq(optimizer_init(&o, "adam", adam, 3, NULL), DT_OK);
    cr_expect_eq(optimizer_slot_start(&o, 2), .25f);
    cr_expect_eq(optimizer_slot_start(&o, 3), .75f);
}

Test(optimizer, a_rate_of_zero_is_allowed)
{
    struct optimizer o = sgd(0);
    float w = 3, g = 1e30f;

    optimizer_apply(&o, &w, &w, NULL, &g, 1, 0);
    cr_assert_eq(w, 3);
}

static void
refused(const char *text, const char *rule, const struct optimizer_param *params, unsigned n)
{
    struct optimizer o, kept;
    struct dt_error err;

    memset(&o, 0x5a, sizeof(o));
    kept = o;
    cr_expect_eq(optimizer_init(&o, rule, params, n, &err), DT_R_BAD_VALUE);
    cr_expect_str_eq(err.text, text);
    cr_expect_eq(memcmp(&o, &kept, sizeof(o)), 0, "a refusal changes nothing");
    cr_expect_eq(optimizer_init(&o, rule, params, n, NULL), DT_R_BAD_VALUE);
}

#define KNOWN                                                                                      \
    "sgd, momentum, nesterov, adagrad, adam, rmsprop, rmsprop-centered, ftrl, add, "               \
    "add-damped, assign"

Test(optimizer, refusals)
{
    const struct optimizer_param lr = {"lr", .1f}, negative = {"lr", -.5f}, nan = {"lr", NAN},
                                 inf = {"lr", INFINITY};
    const struct optimizer_param twice[] = {{"lr", .1f}, {"lr", .2f}};
    const struct optimizer_param foreign[] = {{"lr", .1f}, {"mu", .9f}};

    refused("unknown optimizer 'sgdd'; known are: " KNOWN, "sgdd", &lr, 1);
    refused("unknown optimizer ''; known are: " KNOWN, "", &lr, 1);
    refused("sgd: parameter lr is missing", "sgd", NULL, 0);
    refused("sgd: has no parameter 'mu'", "sgd", foreign, 2);
    refused("sgd: lr is given twice", "sgd", twice, 2);
    refused("sgd: lr is -0.5, must be finite and at least 0", "sgd", &negative, 1);
    refused("sgd: lr is inf, must be finite and at least 0", "sgd", &inf, 1);
    refused("sgd: lr is nan, must be finite and at least 0", "sgd", &nan, 1);
}

#define REFUSED(text, rule, ...)                                                                   \
    refused(text, rule, (const struct optimizer_param[]){__VA_ARGS__},                             \
            sizeof((const struct optimizer_param[]){__VA_ARGS__}) /                                \
                sizeof(struct optimizer_param))

Test(optimizer, refusals_of_adagrad)
{
    struct optimizer o;
    const struct optimizer_param keras[] = {{"lr", 1}, {"eps", 1e-7f}, {"initial_accumulator", 0}};

    refused("adagrad: parameter lr is missing", "adagrad", keras + 1, 2);
    REFUSED("adagrad: initial_accumulator is 0, must be above 0 when eps is 0", "adagrad",
            {"lr", 1}, {"initial_accumulator", 0});
    REFUSED("adagrad: initial_accumulator is -0.1, must be finite and at least 0", "adagrad",
            {"lr", 1}, {"initial_accumulator", -.1f});
    REFUSED("adagrad: eps is -1, must be finite and at least 0", "adagrad", {"lr", 1}, {"eps", -1});
    REFUSED("adagrad: eps is inf, must be finite and at least 0", "adagrad", {"eps", INFINITY});
    REFUSED("adagrad: has no parameter 'beta1'", "adagrad", {"lr", 1}, {"beta1", .9f});
    cr_expect_eq(optimizer_init(&o, "adagrad", keras, 3, NULL), DT_OK);
}

Test(optimizer, refusals_of_adam)
{
    struct optimizer o;
    const struct optimizer_param least[] = {{"lr", 0}, {"beta1", 0}, {"beta2", 0}, {"eps", 1e-45f}};

    refused("adam: parameter lr is missing", "adam", least + 1, 3);
    REFUSED("adam: lr is nan, must be finite and at least 0", "adam", {"lr", NAN});
    REFUSED("adam: beta1 is 1, must be at least 0 and below 1", "adam", {"beta1", 1});
    REFUSED("adam: beta1 is -0.1, must be at least 0 and below 1", "adam", {"beta1", -.1f});
    REFUSED("adam: beta2 is 1, must be at least 0 and below 1", "adam", {"beta2", 1});
    REFUSED("adam: beta2 is nan, must be at least 0 and below 1", "adam", {"beta2", NAN});
    REFUSED("adam: eps is 0, must be above 0", "adam", {"lr", 1}, {"eps", 0});
    REFUSED("adam: eps is -1e-08, must be finite and at least 0", "adam", {"eps", -1e-8f});
    REFUSED("adam: has no parameter 'rho'", "adam", {"lr", 1}, {"rho", .9f});
    cr_expect_eq(optimizer_init(&o, "adam", least, 4, NULL), DT_OK);
}

Test(optimizer, refusals_of_momentum_rmsprop_and_ftrl)
{
    REFUSED("momentum: momentum is 1, must be at least 0 and below 1", "momentum", {"momentum", 1});
    REFUSED("nesterov: parameter lr is missing", "nesterov", {"momentum", .9f});
    REFUSED("rmsprop: eps is 0, must be above 0", "rmsprop", {"lr", 1}, {"eps", 0});
    REFUSED("rmsprop: rho is 1, must be at least 0 and below 1", "rmsprop", {"rho", 1});
    REFUSED("rmsprop-centered: eps is 0, must be above 0", "rmsprop-centered", {"lr", 1},
            {"eps", 0});
    REFUSED("ftrl: lr is 0, must be above 0", "ftrl", {"lr", 0});
    REFUSED("ftrl: initial_accumulator is 0, must be above 0", "ftrl", {"lr", 1},
            {"initial_accumulator", 0});
    REFUSED("ftrl: l1 is -1, must be finite and at least 0", "ftrl", {"lr", 1}, {"l1", -1});
}

Test(optimizer, centered_rmsprop_cannot_race)
{
    cr_expect_not(optimizer_can_race("rmsprop-centered"));
    cr_expect(optimizer_can_race("rmsprop"));
    cr_expect_not(optimizer_can_race("nonsense"));
}

Test(optimizer, add_and_assign_have_no_parameters)
{
    REFUSED("add: has no parameter 'lr'", "add", {"lr", 1});
    REFUSED("assign: has no parameter 'lr'", "assign", {"lr", 1});
}

Test(optimizer, long_foreign_names_are_cut)
{
    struct optimizer_param p = {NULL, 1};
    struct optimizer o;
    struct dt_error err;
    char name[2000];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    p.name = name;
    cr_assert_eq(optimizer_init(&o, "sgd", &p, 1, &err), DT_R_BAD_VALUE);
    cr_assert_lt(strlen(err.text), 100);
    cr_assert_eq(optimizer_init(&o, name, NULL, 0, &err), DT_R_BAD_VALUE);
    cr_assert_lt(strlen(err.text), 200);
}

Test(optimizer, rules_are_listed_and_say_whether_they_follow_a_gradient)
{
    static const char *const steps[] = {"sgd", "adagrad", "adam"};
    struct optimizer o;
    struct dt_error err;
    struct optimizer_param lr = {"lr", 0.1f};
    unsigned n = 0;

    for (const char *name; (name = optimizer_name_at(n)) != NULL; n++)
        cr_expect_eq(optimizer_init(&o, name, &lr, optimizer_has_rate(name), &err), DT_OK, "%s",
                     err.text);
    cr_expect_geq(n, 5);
    for (unsigned i = 0; i < 3; i++)
        cr_expect(optimizer_has_rate(steps[i]), "%s", steps[i]);
    cr_expect_not(optimizer_has_rate("add"));
    cr_expect_not(optimizer_has_rate("assign"));
    cr_expect_not(optimizer_has_rate("nonsense"));
}
