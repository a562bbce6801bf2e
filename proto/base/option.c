/*
 * option.c - the option table: defaults, setting by name, which were given, help and dump.
 *
 * Invariant: after dt_options_init(), successful or not, dt_options_deinit() is right. The settings
 * belong to one thread; tables are constant.
 */
#include "proto/base/option.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/near.h"
#include "proto/base/option_field.h"

#define BITS (sizeof(unsigned long) * CHAR_BIT)
#define MAX_ROWS (sizeof(((struct dt_options_head *)0)->given) * CHAR_BIT)
#define HELP_COLUMN 28
#define HELP_WIDTH 79

enum dt_status
dt_options_init(const struct dt_option *table, void *settings, struct dt_error *err)
{
    struct dt_error why;
    const struct dt_option *row;

    memset(settings, 0, sizeof(struct dt_options_head));
    for (row = table; row->name; row++)
        dt_field_zero(row, settings);
    if ((size_t)(row - table) > MAX_ROWS)
        return dt_fail(err, DT_E_INTERNAL, "the option table has more than %zu rows", MAX_ROWS);
    for (row = table; row->name; row++) {
        if (row->def && !dt_field_set(row, settings, row->def, true, &why))
            return dt_fail(err, why.code == DT_E_NO_MEMORY ? DT_E_NO_MEMORY : DT_E_INTERNAL,
                           "default of --%s: '%s' %s", row->name, row->def, why.text);
    }
    return DT_OK;
}

void
dt_options_deinit(const struct dt_option *table, void *settings)
{
    for (; table->name; table++)
        dt_field_clear(table, settings);
}

static bool
is_given(const struct dt_option *table, const void *settings, const struct dt_option *row)
{
    const struct dt_options_head *head = settings;
    size_t i = (size_t)(row - table);

    return head->given[i / BITS] >> (i % BITS) & 1;
}

static void
mark_given(const struct dt_option *table, void *settings, const struct dt_option *row)
{
    struct dt_options_head *head = settings;
    size_t i = (size_t)(row - table);

    head->given[i / BITS] |= 1ul << (i % BITS);
}

bool
dt_options_given(const struct dt_option *table, const void *settings, const char *name)
{
    const struct dt_option *row;

    for (row = table; row->name; row++) {
        if (strcmp(row->name, name) == 0)
            return is_given(table, settings, row);
    }
    return false;
}

/* The name of `row` as it is written in `scope`. */
static void
spell(const struct dt_option *row, unsigned scope, char name[DT_OPTION_NAME])
{
    if (scope & DT_OPT_FILE)
        dt_field_key(row, name);
    else
        snprintf(name, DT_OPTION_NAME, "%s", row->name);
}

/* The row whose name is most like `name`; NULL if none is near. */
static const struct dt_option *
find_near(const struct dt_option *table, unsigned scope, const char *name)
{
    const struct dt_option *near = NULL;
    char other[DT_OPTION_NAME];
    struct dt_near n;

    dt_near_init(&n, name);
    for (; table->name; table++) {
        if (!(table->scope & scope))
            continue;
        spell(table, scope, other);
        if (dt_near_offer(&n, other))
            near = table;
    }
    return near;
}

static enum dt_status
fail_unknown(const struct dt_option *table, unsigned scope, const char *name, const char *where,
             struct dt_error *err)
{
    const struct dt_option *near = find_near(table, scope, name);
    char other[DT_OPTION_NAME];

    if (near)
        spell(near, scope, other);
    if (scope & DT_OPT_FILE)
        return near ? dt_fail(err, DT_E_CONFIG, "%s: unknown key %.64s; did you mean %s?", where,
                              name, other)
                    : dt_fail(err, DT_E_CONFIG, "%s: unknown key %.64s", where, name);
    return near ? dt_fail(err, DT_E_USAGE, "%s: unknown option; did you mean --%s?", where, other)
                : dt_fail(err, DT_E_USAGE, "%s: unknown option; see --help", where);
}

/* The row of that name; `err` is filled if it does not exist in `scope`. */
static const struct dt_option *
find(const struct dt_option *table, unsigned scope, const char *name, const char *where,
     struct dt_error *err)
{
    const struct dt_option *row;
    char other[DT_OPTION_NAME];

    for (row = table; row->name; row++) {
        spell(row, scope, other);
        if (strcmp(other, name) != 0)
            continue;
        if (row->scope & scope)
            return row;
        if (scope & DT_OPT_FILE)
            dt_fail(err, DT_E_CONFIG, "%s: %s can only be given on the command line, as --%s",
                    where, name, row->name);
        else
            dt_fail(err, DT_E_USAGE, "%s: can only be set in the configuration file", where);
        return NULL;
    }
    fail_unknown(table, scope, name, where, err);
    return NULL;
}

enum dt_status
dt_options_set(const struct dt_option *table, unsigned scope, void *settings, const char *name,
               const char *value, const char *where, struct dt_error *err)
{
    enum dt_status code = scope & DT_OPT_FILE ? DT_E_CONFIG : DT_E_USAGE;
    const struct dt_option *row = find(table, scope, name, where, err);
    struct dt_error why;

    if (!row)
        return code;
    if (dt_field_set(row, settings, value, !is_given(table, settings, row), &why)) {
        mark_given(table, settings, row);
        return DT_OK;
    }
    if (why.code == DT_E_NO_MEMORY)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: out of memory", where);
    if (scope & DT_OPT_FILE)
        return dt_fail(err, code, "%s: %s: '%.100s' %s", where, name, value, why.text);
    return dt_fail(err, code, "%s: '%.100s' %s", where, value, why.text);
}

/* `text` in lines of HELP_WIDTH from HELP_COLUMN on; the cursor stands at `column`. */
static void
print_wrapped(const char *text, int column, FILE *out)
{
    int at = column;

    while (*text) {
        int len = (int)strcspn(text, " ");

        if (at > HELP_COLUMN && at + 1 + len > HELP_WIDTH) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
        }
        at += fprintf(out, at > HELP_COLUMN ? " %.*s" : "%.*s", len, text);
        text += len;
        text += strspn(text, " ");
    }
    fprintf(out, "\n");
}

static void
print_help(const struct dt_option *row, FILE *out)
{
    const char *arg = row->arg ? row->arg : row->choices;
    const char *help = row->help ? row->help : "";
    char text[1024];
    int column;

    if (row->letter)
        column = fprintf(out, "  -%c, --%s", row->letter, row->name);
    else
        column = fprintf(out, "      --%s", row->name);
    if (row->type != DT_OPT_FLAG)
        column += fprintf(out, " %s", arg ? arg : "VALUE");
    if (column > HELP_COLUMN - 2)
        column = fprintf(out, "\n") - 1;
    fprintf(out, "%*s", HELP_COLUMN - column, "");
    if (row->def && row->def[0] && row->type != DT_OPT_FLAG && !strstr(help, "(default"))
        snprintf(text, sizeof(text), "%s (default %s)", help, row->def);
    else
        snprintf(text, sizeof(text), "%s", help);
    print_wrapped(text, HELP_COLUMN, out);
}

void
dt_options_help(const struct dt_option *table, FILE *out)
{
    for (; table->name; table++) {
        if (table->scope & DT_OPT_CLI)
            print_help(table, out);
    }
}

/* The help as a comment, in lines of HELP_WIDTH. */
static void
print_comment(const char *text, FILE *out)
{
    int at = 0;

    while (*text) {
        int len = (int)strcspn(text, " ");

        if (at == 0 || at + 1 + len > HELP_WIDTH)
            at = fprintf(out, at ? "\n#" : "#") - (at ? 1 : 0);
        at += fprintf(out, " %.*s", len, text);
        text += len;
        text += strspn(text, " ");
    }
    fprintf(out, "\n");
}

static const char *
default_text(const struct dt_option *row)
{
    if (row->def)
        return row->def;
    switch (row->type) {
    case DT_OPT_FLAG:
        return "no";
    case DT_OPT_STRING:
    case DT_OPT_LIST:
    case DT_OPT_CSV:
        return "";
    default:
        return "0";
    }
}

void
dt_options_dump(const struct dt_option *table, const void *settings, FILE *out)
{
    const struct dt_option *row;
    char key[DT_OPTION_NAME];

    for (row = table; row->name; row++) {
        const char *def = default_text(row);

        if (!(row->scope & DT_OPT_FILE))
            continue;
        fprintf(out, "\n");
        print_comment(row->help ? row->help : "", out);
        dt_field_key(row, key);
        if (is_given(table, settings, row))
            dt_field_dump(row, settings, out);
        else
            fprintf(out, def[0] ? "#%s = %s\n" : "#%s =\n", key, def);
    }
}

char *
dt_option_text(const struct dt_option *row, const void *settings)
{
    char *text = NULL, *p;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    dt_field_dump(row, settings, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    for (p = text; *p; p++) {
        if (*p == '\n')
            *p = p[1] ? ' ' : 0;
    }
    return text;
}

void
dt_option_copy(const struct dt_option *row, void *to, const void *from)
{
    memcpy((char *)to + row->offset, (const char *)from + row->offset, dt_field_bytes(row));
}

void
dt_options_list(const struct dt_option *table, const char *command, FILE *out)
{
    static const char *const types[] = {
        [DT_OPT_FLAG] = "flag",         [DT_OPT_U64] = "number",    [DT_OPT_I64] = "number",
        [DT_OPT_DOUBLE] = "number",     [DT_OPT_BYTES] = "bytes",   [DT_OPT_ENUM] = "choice",
        [DT_OPT_DURATION] = "duration", [DT_OPT_STRING] = "string", [DT_OPT_LIST] = "list",
        [DT_OPT_CSV] = "csv",
    };

    for (; table->name; table++) {
        fprintf(out, "option|%s|%s|%c|%s|%s%s%s|%s|", command, table->name,
                table->letter ? table->letter : '-', types[table->type],
                table->scope & DT_OPT_CLI ? "c" : "", table->scope & DT_OPT_FILE ? "f" : "",
                table->scope & DT_OPT_RELOAD ? "r" : "", table->arg ? table->arg : "");
        fprintf(out, "%s|", table->def ? table->def : "");
        for (const char *p = table->choices; p && *p; p++)
            putc(*p == '|' ? ' ' : *p, out);
        fprintf(out, "|%s\n", table->help ? table->help : "");
    }
}
