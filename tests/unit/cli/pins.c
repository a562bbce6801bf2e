/* pins.c - which pins of --place are taken. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "worker/cli/pins.h"

TestSuite(pins, .timeout = 40);

/* `place` as an option of `run` with two ps tasks. */
static enum dt_status
check(const char *model, const char *place, struct dt_error *err)
{
    char model_text[64], place_text[256];
    char *argv[] = {"run", "--ps-tasks=2", "--data=d", model_text, place_text, NULL};
    struct settings s = {0};

    snprintf(model_text, sizeof(model_text), "--model=%s", model);
    snprintf(place_text, sizeof(place_text), "--place=%s", place);
    cr_assert_eq(dt_options_init(settings_run, &s, err), DT_OK);
    enum dt_status r = dt_options_parse(settings_run, &s, 5, argv, NULL, err);
    if (r == DT_OK)
        r = settings_check_run(&s, err);
    dt_options_deinit(settings_run, &s);
    return r;
}

static void
expect_refused(const char *model, const char *place, const char *word)
{
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(check(model, place, &err), DT_E_USAGE, "%s is not refused", place);
    cr_expect(strstr(err.text, word) != NULL, "%s: '%s' does not say %s", place, err.text, word);
}

Test(pins, variables_of_each_model_can_be_pinned)
{
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(check("softmax", "dense/kernel=1,dense/bias=0", &err), DT_OK, "%s", err.text);
    cr_expect_eq(check("linear", "dense/kernel=1", &err), DT_OK, "%s", err.text);
    cr_expect_eq(check("mlp:8,4", "dense1/kernel=0,dense2/bias=1,dense3/kernel=1", &err), DT_OK,
                 "%s", err.text);
}

Test(pins, unknown_variables_are_answered_with_the_known_ones)
{
    expect_refused("mlp:8", "dense3/kernel=0",
                   "dense1/kernel, dense1/bias, dense2/kernel, dense2/bias");
    expect_refused("softmax", "dense/kernel=0,kernel=1", "'kernel'");
    expect_refused("softmax", "Dense/kernel=0", "dense/kernel, dense/bias");
}

Test(pins, ps_tasks_are_counted_from_0)
{
    expect_refused("softmax", "dense/kernel=2", "0 to 1");
    expect_refused("softmax", "dense/kernel=18446744073709551615", "0 to 1");
}

Test(pins, malformed_and_repeated_ones_are_refused)
{
    expect_refused("softmax", "dense/kernel", "NAME=TASK");
    expect_refused("softmax", "dense/kernel=", "NAME=TASK");
    expect_refused("softmax", "=1", "NAME=TASK");
    expect_refused("softmax", "dense/kernel=-1", "NAME=TASK");
    expect_refused("softmax", "dense/kernel=18446744073709551616", "NAME=TASK");
    expect_refused("softmax",
                   "a_name_of_more_than_sixty_four_characters_is_longer_than_any_variables_name=1",
                   "NAME=TASK");
    expect_refused("softmax", "dense/kernel=1,dense/kernel=1", "twice");
}
