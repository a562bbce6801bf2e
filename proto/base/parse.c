/*
 * parse.c - text to numbers. No function here looks at the process's locale: digits are read by
 * hand, fractions by strtod_l in the C locale. No state but that locale; any thread.
 */
#include "proto/base/parse.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CELL 255
#define MAX_EXACT 9007199254740992.0 /* 2^53: whole numbers are exact up to here */

static locale_t c_locale;

static void
make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc's own object: no memory needed */
    if (!c_locale)
        abort();
}

static locale_t
get_c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_c_locale);
    return c_locale;
}

/* The digits at the start of `text`: their number and their value; false on overflow or none. */
static bool
read_digits(const char *text, size_t *len, uint64_t *out)
{
    uint64_t x = 0;
    size_t i;

    for (i = 0; text[i] >= '0' && text[i] <= '9'; i++) {
        if (__builtin_mul_overflow(x, (uint64_t)10, &x) ||
            __builtin_add_overflow(x, (uint64_t)(text[i] - '0'), &x))
            return false;
    }
    *len = i;
    *out = x;
    return i > 0;
}

bool
dt_parse_u64(const char *text, uint64_t *out)
{
    uint64_t x;
    size_t len;

    if (!read_digits(text, &len, &x) || text[len])
        return false;
    *out = x;
    return true;
}

bool
dt_parse_i64(const char *text, int64_t *out)
{
    bool negative = *text == '-';
    uint64_t x;

    if (!dt_parse_u64(text + negative, &x) || x > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - x) : (int64_t)x;
    return true;
}

/* Only what a decimal number is made of: strtod alone would take " 1", "0x1p3", "inf" and "nan". */
static bool
is_decimal(const char *text)
{
    return *text && text[strspn(text, "0123456789+-.eE")] == 0;
}

bool
dt_parse_double(const char *text, double *out)
{
    char *end;
    double x;

    if (!is_decimal(text))
        return false;
    x = strtod_l(text, &end, get_c_locale());
    if (end == text || *end || !isfinite(x))
        return false;
    *out = x;
    return true;
}

bool
dt_parse_float_n(const char *text, size_t len, float *out)
{
    char cell[MAX_CELL + 1], *end;
    float x;

    if (len == 0 || len > MAX_CELL || memchr(text, 0, len))
        return false;
    memcpy(cell, text, len);
    cell[len] = 0;
    if (!is_decimal(cell))
        return false;
    x = strtof_l(cell, &end, get_c_locale());
    if (end == cell || *end || !isfinite(x))
        return false;
    *out = x;
    return true;
}

bool
dt_parse_bool(const char *text, bool *out)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
    size_t i, k;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (k = 0; k < 2; k++) {
            if (strcasecmp_l(text, words[i][k], get_c_locale()) == 0) {
                *out = k == 1;
                return true;
            }
        }
    }
    return false;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* The factor of `text`, 0 if it is no unit of the list (which ends with a NULL name). */
static uint64_t
find_unit(const struct unit *units, const char *text, bool any_case)
{
    for (; units->name; units++) {
        if (any_case ? strcasecmp_l(text, units->name, get_c_locale()) == 0
                     : strcmp(text, units->name) == 0)
            return units->factor;
    }
    return 0;
}

bool
dt_parse_duration_ms(const char *text, int64_t *out)
{
    static const struct unit units[] = {{"", 1000},     {"ms", 1},      {"s", 1000},
                                        {"min", 60000}, {"h", 3600000}, {NULL, 0}};
    size_t len = strspn(text, "0123456789.");
    uint64_t factor = find_unit(units, text + len, false);
    char number[64];
    double x;

    if (factor == 0 || len >= sizeof(number))
        return false;
    memcpy(number, text, len);
    number[len] = 0;
    if (!dt_parse_double(number, &x))
        return false;
    x *= (double)factor;
    if (x > MAX_EXACT || (x > 0 && x < 0.5)) /* a time that is not 0 must not become 0 */
        return false;
    *out = llround(x);
    return true;
}

bool
dt_parse_bytes(const char *text, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},
        {"B", 1},
        {"K", UINT64_C(1) << 10},
        {"KiB", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"MiB", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"GiB", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
        {"TiB", UINT64_C(1) << 40},
        {NULL, 0},
    };
    uint64_t x, factor;
    size_t len;

    if (!read_digits(text, &len, &x))
        return false;
    factor = find_unit(units, text + len, true);
    if (factor == 0 || __builtin_mul_overflow(x, factor, &x))
        return false;
    *out = x;
    return true;
}

void
dt_format_double(double x, char out[DT_NUMBER_TEXT])
{
    locale_t old = uselocale(get_c_locale());
    int digits;

    for (digits = 15; digits <= 17; digits++) {
        snprintf(out, DT_NUMBER_TEXT, "%.*g", digits, x);
        if (strtod_l(out, NULL, get_c_locale()) == x)
            break;
    }
    uselocale(old);
}

void
dt_format_float(float x, char out[DT_NUMBER_TEXT])
{
    locale_t old = uselocale(get_c_locale());
    int digits;

    for (digits = 6; digits <= 9; digits++) {
        snprintf(out, DT_NUMBER_TEXT, "%.*g", digits, (double)x);
        if (strtof_l(out, NULL, get_c_locale()) == x)
            break;
    }
    uselocale(old);
}
