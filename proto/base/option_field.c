/*
 * option_field.c - text to a field of a settings struct and back, by the type of its row.
 *
 * Invariant: a field changes only when the whole text was good. No state; any thread.
 */
#include "proto/base/option_field.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/parse.h"

static void *
field_of(const struct dt_option *row, void *settings)
{
    return (char *)settings + row->offset;
}

static const void *
const_field_of(const struct dt_option *row, const void *settings)
{
    return (const char *)settings + row->offset;
}

void
dt_field_key(const struct dt_option *row, char key[DT_OPTION_NAME])
{
    size_t i;

    for (i = 0; row->name[i] && i + 1 < DT_OPTION_NAME; i++)
        key[i] = row->name[i] == '-' ? '_' : row->name[i];
    key[i] = 0;
}

static void
list_free(char **list)
{
    size_t i;

    for (i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

static size_t
list_count(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* Add a copy of text[0..len) to *list; false, and nothing changed, when memory is short. */
static bool
list_add(char ***list, const char *text, size_t len)
{
    size_t n = list_count(*list);
    char *copy = strndup(text, len);
    char **grown = copy ? realloc(*list, (n + 2) * sizeof(*grown)) : NULL;

    if (!grown) {
        free(copy);
        return false;
    }
    grown[n] = copy;
    grown[n + 1] = NULL;
    *list = grown;
    return true;
}

size_t
dt_field_bytes(const struct dt_option *row)
{
    static const size_t sizes[] = {
        [DT_OPT_FLAG] = sizeof(bool),        [DT_OPT_U64] = sizeof(uint64_t),
        [DT_OPT_I64] = sizeof(int64_t),      [DT_OPT_DOUBLE] = sizeof(double),
        [DT_OPT_DURATION] = sizeof(int64_t), [DT_OPT_BYTES] = sizeof(uint64_t),
        [DT_OPT_STRING] = sizeof(char *),    [DT_OPT_ENUM] = sizeof(int),
        [DT_OPT_LIST] = sizeof(char **),     [DT_OPT_CSV] = sizeof(char **),
    };

    return sizes[row->type];
}

void
dt_field_zero(const struct dt_option *row, void *settings)
{
    memset(field_of(row, settings), 0, dt_field_bytes(row));
}

void
dt_field_clear(const struct dt_option *row, void *settings)
{
    void *field = field_of(row, settings);

    if (row->type == DT_OPT_STRING)
        free(*(char **)field);
    else if (row->type == DT_OPT_LIST || row->type == DT_OPT_CSV)
        list_free(*(char ***)field);
    dt_field_zero(row, settings);
}

/* One bound as the user writes it. */
static void
format_bound(const struct dt_option *row, double x, char out[DT_NUMBER_TEXT])
{
    if (row->type == DT_OPT_DURATION)
        snprintf(out, DT_NUMBER_TEXT, "%lld ms", (long long)x);
    else
        dt_format_double(x, out);
}

/* "must be `kind`[ from A to B| of at least A]"; returns false. */
static bool
refuse(const struct dt_option *row, const char *kind, struct dt_error *why)
{
    char min[DT_NUMBER_TEXT], max[DT_NUMBER_TEXT];

    format_bound(row, row->min, min);
    format_bound(row, row->max, max);
    if (row->min == 0 && row->max == 0)
        dt_fail(why, DT_E_USAGE, "must be %s", kind);
    else if (row->max < row->min)
        dt_fail(why, DT_E_USAGE, "must be %s of at least %s", kind, min);
    else
        dt_fail(why, DT_E_USAGE, "must be %s from %s to %s", kind, min, max);
    return false;
}

static bool
is_in_range(const struct dt_option *row, double x)
{
    if (row->min == 0 && row->max == 0)
        return true;
    return x >= row->min && (row->max < row->min || x <= row->max);
}

static bool
set_u64(const struct dt_option *row, uint64_t *field, const char *text, struct dt_error *why)
{
    bool is_bytes = row->type == DT_OPT_BYTES;
    uint64_t x;

    if (!(is_bytes ? dt_parse_bytes(text, &x) : dt_parse_u64(text, &x)) ||
        !is_in_range(row, (double)x))
        return refuse(row, is_bytes ? "a size (4096, 64KiB, 1MiB, 2GiB)" : "a whole number", why);
    *field = x;
    return true;
}

static bool
set_i64(const struct dt_option *row, int64_t *field, const char *text, struct dt_error *why)
{
    bool is_time = row->type == DT_OPT_DURATION;
    int64_t x;

    if (!(is_time ? dt_parse_duration_ms(text, &x) : dt_parse_i64(text, &x)) ||
        !is_in_range(row, (double)x))
        return refuse(row, is_time ? "a time (250ms, 10s, 2min, 1h)" : "a whole number", why);
    *field = x;
    return true;
}

static bool
set_double(const struct dt_option *row, double *field, const char *text, struct dt_error *why)
{
    double x;

    if (!dt_parse_double(text, &x) || !is_in_range(row, x))
        return refuse(row, "a number", why);
    *field = x;
    return true;
}

static bool
set_flag(bool *field, const char *text, struct dt_error *why)
{
    if (dt_parse_bool(text, field))
        return true;
    dt_fail(why, DT_E_USAGE, "must be yes or no");
    return false;
}

static bool
set_enum(const struct dt_option *row, int *field, const char *text, struct dt_error *why)
{
    const char *p = row->choices;
    size_t len;
    int i;

    for (i = 0; *p; i++) {
        len = strcspn(p, "|");
        if (strlen(text) == len && memcmp(p, text, len) == 0) {
            *field = i;
            return true;
        }
        p += len + (p[len] == '|');
    }
    dt_fail(why, DT_E_USAGE, "must be one of %s", row->choices);
    return false;
}

static bool
fail_memory(struct dt_error *why)
{
    dt_fail(why, DT_E_NO_MEMORY, "out of memory");
    return false;
}

static bool
set_string(char **field, const char *text, struct dt_error *why)
{
    char *copy = strdup(text);

    if (!copy)
        return fail_memory(why);
    free(*field);
    *field = copy;
    return true;
}

static bool
add_to_list(char ***field, const char *text, bool replace, struct dt_error *why)
{
    char **fresh = NULL;

    if (!list_add(replace ? &fresh : field, text, strlen(text)))
        return fail_memory(why);
    if (replace) {
        list_free(*field);
        *field = fresh;
    }
    return true;
}

/* Elements of "a, b,c" into *list; blanks around them do not count. An empty text is no element. */
static bool
split(const char *text, char ***list, struct dt_error *why)
{
    const char *p = text + strspn(text, " \t");

    if (!*p)
        return true;
    for (;;) {
        size_t to_comma = strcspn(p, ","), len = to_comma;

        while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
            len--;
        if (len == 0) {
            dt_fail(why, DT_E_USAGE, "must not have an empty element");
            return false;
        }
        if (!list_add(list, p, len))
            return fail_memory(why);
        p += to_comma;
        if (!*p)
            return true;
        p += 1 + strspn(p + 1, " \t");
    }
}

static bool
set_csv(char ***field, const char *text, struct dt_error *why)
{
    char **fresh = NULL;

    if (!split(text, &fresh, why)) {
        list_free(fresh);
        return false;
    }
    list_free(*field);
    *field = fresh;
    return true;
}

bool
dt_field_set(const struct dt_option *row, void *settings, const char *text, bool replace,
             struct dt_error *why)
{
    void *field = field_of(row, settings);

    switch (row->type) {
    case DT_OPT_FLAG:
        return set_flag(field, text, why);
    case DT_OPT_U64:
    case DT_OPT_BYTES:
        return set_u64(row, field, text, why);
    case DT_OPT_I64:
    case DT_OPT_DURATION:
        return set_i64(row, field, text, why);
    case DT_OPT_DOUBLE:
        return set_double(row, field, text, why);
    case DT_OPT_STRING:
        return set_string(field, text, why);
    case DT_OPT_ENUM:
        return set_enum(row, field, text, why);
    case DT_OPT_LIST:
        return add_to_list(field, text, replace, why);
    case DT_OPT_CSV:
        return set_csv(field, text, why);
    }
    dt_fail(why, DT_E_INTERNAL, "has an unknown type");
    return false;
}

/* The largest unit that divides x. */
static void
dump_bytes(uint64_t x, FILE *out)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    unsigned i = 0;

    while (x && x % 1024 == 0 && i < 4) {
        x /= 1024;
        i++;
    }
    fprintf(out, "%llu%s\n", (unsigned long long)x, units[i]);
}

static void
dump_duration(int64_t ms, FILE *out)
{
    if (ms % 1000 == 0)
        fprintf(out, "%llds\n", (long long)(ms / 1000));
    else
        fprintf(out, "%lldms\n", (long long)ms);
}

static void
dump_choice(const struct dt_option *row, int index, FILE *out)
{
    const char *p = row->choices;

    for (; index > 0; index--)
        p += strcspn(p, "|") + 1;
    fprintf(out, "%.*s\n", (int)strcspn(p, "|"), p);
}

static void
dump_list(const char *key, char *const *list, FILE *out)
{
    size_t i;

    for (i = 0; list && list[i]; i++)
        fprintf(out, "%s = %s\n", key, list[i]);
    if (i == 0)
        fprintf(out, "# %s =\n", key);
}

static void
dump_csv(const char *key, char *const *list, FILE *out)
{
    size_t i;

    fprintf(out, list && list[0] ? "%s =" : "# %s =", key);
    for (i = 0; list && list[i]; i++)
        fprintf(out, "%s%s", i ? "," : " ", list[i]);
    fprintf(out, "\n");
}

static void
dump_scalar(const struct dt_option *row, const void *field, FILE *out)
{
    char text[DT_NUMBER_TEXT];

    if (row->type == DT_OPT_FLAG) {
        fprintf(out, "%s\n", *(const bool *)field ? "yes" : "no");
    } else if (row->type == DT_OPT_U64) {
        fprintf(out, "%llu\n", (unsigned long long)*(const uint64_t *)field);
    } else if (row->type == DT_OPT_I64) {
        fprintf(out, "%lld\n", (long long)*(const int64_t *)field);
    } else if (row->type == DT_OPT_DOUBLE) {
        dt_format_double(*(const double *)field, text);
        fprintf(out, "%s\n", text);
    } else if (row->type == DT_OPT_DURATION) {
        dump_duration(*(const int64_t *)field, out);
    } else if (row->type == DT_OPT_BYTES) {
        dump_bytes(*(const uint64_t *)field, out);
    } else {
        dump_choice(row, *(const int *)field, out);
    }
}

void
dt_field_dump(const struct dt_option *row, const void *settings, FILE *out)
{
    const void *field = const_field_of(row, settings);
    char key[DT_OPTION_NAME];

    dt_field_key(row, key);
    if (row->type == DT_OPT_LIST) {
        dump_list(key, *(char *const *const *)field, out);
    } else if (row->type == DT_OPT_CSV) {
        dump_csv(key, *(char *const *const *)field, out);
    } else if (row->type == DT_OPT_STRING) {
        const char *text = *(const char *const *)field;

        fprintf(out, text ? "%s = %s\n" : "# %s =\n", key, text);
    } else {
        fprintf(out, "%s = ", key);
        dump_scalar(row, field, out);
    }
}
