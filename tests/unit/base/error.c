/*
 * error.c - error text: filled, prefixed, cut, and absent.
 */
#include "proto/base/error.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(error, .timeout = 40);

Test(error, fail_returns_the_code_and_fills_the_text)
{
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(dt_fail(&err, DT_E_IO, "%s: line %d", "a.csv", 7), DT_E_IO);
    cr_assert_eq(err.code, DT_E_IO);
    cr_assert_str_eq(err.text, "a.csv: line 7");
}

Test(error, prefix_keeps_the_code)
{
    struct dt_error err;

    dt_fail(&err, DT_R_QUOTA, "too much");
    cr_assert_eq(dt_fail_prefix(&err, "job %s", "x"), DT_R_QUOTA);
    cr_assert_str_eq(err.text, "job x: too much");
}

Test(error, null_is_allowed)
{
    cr_assert_eq(dt_fail(NULL, DT_E_DATA, "x"), DT_E_DATA);
    cr_assert_eq(dt_fail_prefix(NULL, "x"), DT_E_INTERNAL);
}

Test(error, own_text_may_be_an_argument)
{
    struct dt_error err;

    dt_fail(&err, DT_E_IO, "inner");
    dt_fail(&err, DT_E_DATA, "outer (%s)", err.text);
    cr_assert_str_eq(err.text, "outer (inner)");
}

Test(error, long_texts_are_cut)
{
    char big[2 * DT_ERROR_TEXT];
    struct dt_error err;

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    dt_fail(&err, DT_E_IO, "%s", big);
    cr_assert_eq(strlen(err.text), DT_ERROR_TEXT - 1);
    dt_fail_prefix(&err, "start");
    cr_assert_eq(strlen(err.text), DT_ERROR_TEXT - 1);
    cr_assert_eq(strncmp(err.text, "start: xxx", 10), 0);
    dt_fail_prefix(&err, "%s", big);
    cr_assert_eq(strlen(err.text), DT_ERROR_TEXT - 1);
}
