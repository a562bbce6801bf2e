/*
 * parse.c - what is a number and what is none; the same in a German locale.
 */
#include "proto/base/parse.h"

#include <criterion/criterion.h>
#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(parse, .timeout = 240);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

Test(parse, u64)
{
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "-1",
                                      "+1",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "one",
                                      "1,000",
                                      "18446744073709551616",
                                      "99999999999999999999999"};
    uint64_t x = 7;
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        cr_assert_not(dt_parse_u64(bad[i], &x), "'%s'", bad[i]);
        cr_assert_eq(x, 7);
    }
    cr_assert(dt_parse_u64("0", &x) && x == 0);
    cr_assert(dt_parse_u64("007", &x) && x == 7);
    cr_assert(dt_parse_u64("18446744073709551615", &x) && x == UINT64_MAX);
}

Test(parse, i64)
{
    static const char *const bad[] = {
        "", "-", "--1", "+1", " 1", "-1 ", "- 1", "9223372036854775808", "-9223372036854775809"};
    int64_t x = 7;
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        cr_assert_not(dt_parse_i64(bad[i], &x), "'%s'", bad[i]);
        cr_assert_eq(x, 7);
    }
    cr_assert(dt_parse_i64("-12", &x) && x == -12);
    cr_assert(dt_parse_i64("-0", &x) && x == 0);
    cr_assert(dt_parse_i64("9223372036854775807", &x) && x == INT64_MAX);
    cr_assert(dt_parse_i64("-9223372036854775808", &x) && x == INT64_MIN);
}

Test(parse, double_values)
{
    static const char *const bad[] = {"",    " 1",        "1 ",    "1,5", "nan",
                                      "inf", "-Infinity", "0x1p3", "1e",  "e5",
                                      ".",   "1.2.3",     "1e999", "--1", "1f"};
    double x = 7;
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        cr_assert_not(dt_parse_double(bad[i], &x), "'%s'", bad[i]);
        cr_assert_eq(x, 7);
    }
    cr_assert(dt_parse_double("0.1", &x) && x == 0.1);
    cr_assert(dt_parse_double("-1.5e-3", &x) && x == -1.5e-3);
    cr_assert(dt_parse_double("+.5", &x) && x == 0.5);
    cr_assert(dt_parse_double("3.", &x) && x == 3);
    cr_assert(dt_parse_double("1.7976931348623157e308", &x) && x == DBL_MAX);
    cr_assert(dt_parse_double("1e-999", &x) && x == 0, "underflow is no error");
}

Test(parse, float_cells)
{
    static const char *const bad[] = {"", " 1", "1 ", "x", "nan", "inf", "1e39", "1;2"};
    char digits[300];
    float x = 7;
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        cr_assert_not(dt_parse_float_n(bad[i], strlen(bad[i]), &x), "'%s'", bad[i]);
        cr_assert_eq(x, 7);
    }
    cr_assert(dt_parse_float_n("12.5,99", 4, &x) && x == 12.5f, "stops at the length");
    cr_assert(dt_parse_float_n("-3e2", 4, &x) && x == -300);
    cr_assert_not(dt_parse_float_n("1\0", 2, &x), "a NUL inside");
    memset(digits, '0', sizeof(digits));
    digits[254] = '5';
    cr_assert(dt_parse_float_n(digits, 255, &x) && x == 5);
    cr_assert_not(dt_parse_float_n(digits, 256, &x), "a cell has at most 255 characters");
}

Test(parse, float_is_rounded_once)
{
    /* Between two floats, a hair above the middle: by way of a double it would become 1. */
    const char *text = "1.00000005960464477540";
    float x;

    cr_assert(dt_parse_float_n(text, strlen(text), &x));
    cr_assert_eq(x, 1.00000011920928955f);
}

Test(parse, bool_words)
{
    static const char *const yes[] = {"true", "yes", "on", "1", "True", "YES"};
    static const char *const no[] = {"false", "no", "off", "0", "False", "Off"};
    static const char *const bad[] = {"", " yes", "y", "2", "tru", "none"};
    bool x;
    size_t i;

    for (i = 0; i < COUNT(yes); i++) {
        x = false;
        cr_assert(dt_parse_bool(yes[i], &x) && x, "%s", yes[i]);
        cr_assert(dt_parse_bool(no[i], &x) && !x, "%s", no[i]);
        x = true;
        cr_assert_not(dt_parse_bool(bad[i], &x), "%s", bad[i]);
        cr_assert(x);
    }
}

Test(parse, durations)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"250ms", 250},    {"10s", 10000},
        {"2min", 120000},  {"1h", 3600000},
        {"3", 3000},       {"0.5", 500},
        {"1.5h", 5400000}, {"0", 0},
        {"0ms", 0},        {".25s", 250},
        {"0.1s", 100},     {"1.001s", 1001},
        {"0.6ms", 1},      {"9007199254740992ms", 1LL << 53},
    };
    static const char *const bad[] = {"",      "s",      "-1s", "1 s",  " 1s",
                                      "1s ",   "1S",     "1m",  "1e3",  "1,5",
                                      "0.4ms", "1.2.3s", "inf", "5sec", "99999999999h"};
    int64_t x;
    size_t i;

    for (i = 0; i < COUNT(good); i++) {
        x = -7;
        cr_assert(dt_parse_duration_ms(good[i].text, &x), "'%s'", good[i].text);
        cr_assert_eq(x, good[i].ms, "'%s' is %lld", good[i].text, (long long)x);
    }
    x = 7;
    for (i = 0; i < COUNT(bad); i++) {
        cr_assert_not(dt_parse_duration_ms(bad[i], &x), "'%s'", bad[i]);
        cr_assert_eq(x, 7);
    }
}

Test(parse, bytes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"4096", 4096},
        {"0", 0},
        {"5B", 5},
        {"64KiB", 65536},
        {"64K", 65536},
        {"1MiB", 1 << 20},
        {"1M", 1 << 20},
        {"2GiB", 2ull << 30},
        {"2g", 2ull << 30},
        {"3TiB", 3ull << 40},
        {"16777215TiB", 16777215ull << 40},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {"",    "K",   "-1",        "1 K",   "1.5G",
                                      "1KB", "1Mi", "16777216T", "1MiBs", "18446744073709551616"};
    uint64_t x;
    size_t i;

    for (i = 0; i < COUNT(good); i++) {
        x = 7;
        cr_assert(dt_parse_bytes(good[i].text, &x), "'%s'", good[i].text);
        cr_assert_eq(x, good[i].bytes, "'%s'", good[i].text);
    }
    x = 7;
    for (i = 0; i < COUNT(bad); i++) {
        cr_assert_not(dt_parse_bytes(bad[i], &x), "'%s'", bad[i]);
        cr_assert_eq(x, 7);
    }
}

Test(parse, format_is_short_and_exact)
{
    static const double values[] = {0.1, 1.0 / 3, 1e300, -2.5, 123456789012345678.0, 5e-324};
    char text[DT_NUMBER_TEXT];
    double x;
    size_t i;

    for (i = 0; i < COUNT(values); i++) {
        dt_format_double(values[i], text);
        cr_assert(dt_parse_double(text, &x), "%s", text);
        cr_assert_eq(x, values[i], "%s", text);
    }
    dt_format_double(0.1, text);
    cr_assert_str_eq(text, "0.1");
    dt_format_double(1e6, text);
    cr_assert_str_eq(text, "1000000");
    dt_format_float(0.1f, text);
    cr_assert_str_eq(text, "0.1");
    dt_format_float(16777217.0f / 3, text);
    cr_assert_eq(strtof(text, NULL), 16777217.0f / 3, "%s", text);
}

static bool
is_german(void)
{
    return strcmp(localeconv()->decimal_point, ",") == 0;
}

/* A locale whose decimal point is a comma: one of the system's, else made in `folder`. */
static bool
become_german(char *folder)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "de_AT.UTF-8",
                                        "fr_FR.UTF-8"};
    char command[256];
    size_t i;

    for (i = 0; i < COUNT(names); i++) {
        if (setlocale(LC_ALL, names[i]) && is_german())
            return true;
    }
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof(command),
             "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") && is_german();
}

static void
remove_folder(const char *folder)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (access(folder, F_OK) == 0 && system(command) != 0)
        cr_log_warn("%s stays", folder);
}

Test(parse, german_locale_changes_nothing)
{
    char folder[] = "/tmp/psd-locale-XXXXXX", text[DT_NUMBER_TEXT];
    bool german = become_german(folder);
    int64_t ms = 0;
    double x = 0;
    float f = 0;

    remove_folder(folder);
    if (!german)
        cr_skip_test("no locale with a decimal comma here, and none can be made");
    cr_assert(dt_parse_double("1.5", &x) && x == 1.5);
    cr_assert_not(dt_parse_double("1,5", &x));
    cr_assert(dt_parse_float_n("2.25", 4, &f) && f == 2.25f);
    cr_assert(dt_parse_duration_ms("0.5s", &ms) && ms == 500);
    dt_format_double(1.5, text);
    cr_assert_str_eq(text, "1.5");
    cr_assert(is_german(), "the caller's locale stays");
    snprintf(text, sizeof(text), "%.1f", 1.5);
    cr_assert_str_eq(text, "1,5");
}
