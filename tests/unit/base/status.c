/*
 * status.c - sentences and exit codes of outcomes.
 */
#include "proto/base/status.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(status, .timeout = 40);

Test(status, every_status_has_its_own_sentence)
{
    const char *seen[DT_E_INTERNAL + 1] = {NULL};
    int s, k;

    for (s = 0; s <= DT_E_INTERNAL; s++) {
        if ((s > DT_PARKED && s < DT_R_HELLO_REQUIRED) || (s > DT_R_TOO_MANY_BAD && s < DT_E_USAGE))
            continue;
        seen[s] = dt_status_text((enum dt_status)s);
        cr_assert_str_neq(seen[s], "unknown status", "%d", s);
        for (k = 0; k < s; k++)
            cr_assert(!seen[k] || strcmp(seen[k], seen[s]), "%d and %d", k, s);
    }
}

Test(status, unknown_numbers)
{
    cr_assert_str_eq(dt_status_text((enum dt_status)9), "unknown status");
    cr_assert_str_eq(dt_status_text((enum dt_status)999), "unknown status");
    cr_assert_str_eq(dt_status_text((enum dt_status) - 1), "unknown status");
    cr_assert_eq(dt_status_exit_code((enum dt_status)9), 70);
}

Test(status, protocol_numbers_never_change)
{
    cr_assert_eq(DT_PARKED, 1);
    cr_assert_eq(DT_R_HELLO_REQUIRED, 16);
    cr_assert_eq(DT_R_NOT_FINITE, 28);
    cr_assert_eq(DT_R_TOO_MANY_BAD, 36);
}

Test(status, rejects_are_a_range)
{
    cr_assert_not(dt_status_is_reject(DT_OK));
    cr_assert_not(dt_status_is_reject(DT_PARKED));
    cr_assert(dt_status_is_reject(DT_R_HELLO_REQUIRED));
    cr_assert(dt_status_is_reject(DT_R_TOO_MANY_BAD));
    cr_assert_not(dt_status_is_reject(DT_E_USAGE));
}

Test(status, exit_codes_are_sysexits)
{
    static const struct {
        enum dt_status status;
        int code;
    } rows[] = {
        {DT_OK, 0},
        {DT_E_USAGE, 64},
        {DT_E_DATA, 65},
        {DT_E_NO_INPUT, 66},
        {DT_R_NOT_FINITE, 65},
        {DT_E_UNAVAILABLE, 69},
        {DT_E_ADDRESS_IN_USE, 69},
        {DT_E_INTERNAL, 70},
        {DT_E_CANT_CREATE, 73},
        {DT_E_IO, 74},
        {DT_E_TEMPORARY, 75},
        {DT_R_JOB_FAILED, 75},
        {DT_R_NO_JOB, 75},
        {DT_E_PROTOCOL, 76},
        {DT_R_VERSION, 76},
        {DT_E_DENIED, 77},
        {DT_R_DENIED, 77},
        {DT_E_CONFIG, 78},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert_eq(dt_status_exit_code(rows[i].status), rows[i].code, "%d", rows[i].status);
}
