/*
 * option_argv.c - a command line into a settings struct. Every value goes through dt_options_set(),
 * so that command line and file have the same rules. One call, one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/base/option_field.h"

struct cursor {
    const struct dt_option *table;
    void *settings;
    int argc;
    char **argv;
    int at;            /* the argument being read */
    char **positional; /* owned; NULL: none allowed */
    size_t n_positional;
    struct dt_error *err;
};

/* The argument behind the current one. Another long option is no value: --save --json is a slip. */
static char *
take_value(struct cursor *c, const char *where)
{
    char *value = c->at + 1 < c->argc ? c->argv[c->at + 1] : NULL;

    if (!value) {
        dt_fail(c->err, DT_E_USAGE, "%s: needs a value", where);
        return NULL;
    }
    if (strncmp(value, "--", 2) == 0) {
        dt_fail(c->err, DT_E_USAGE, "%s: needs a value, and '%.64s' looks like an option", where,
                value);
        return NULL;
    }
    c->at++;
    return value;
}

static const struct dt_option *
find_long(const struct cursor *c, const char *name)
{
    const struct dt_option *row;

    for (row = c->table; row->name; row++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

/* --name, --name=VALUE or --name VALUE */
static enum dt_status
read_long(struct cursor *c, const char *arg)
{
    const char *eq = strchr(arg, '='), *value = eq ? eq + 1 : NULL;
    size_t len = eq ? (size_t)(eq - arg) : strlen(arg);
    char where[DT_OPTION_NAME + 2];
    const struct dt_option *row;

    if (len >= sizeof(where))
        return dt_fail(c->err, DT_E_USAGE, "%.64s...: unknown option; see --help", arg);
    memcpy(where, arg, len);
    where[len] = 0;
    row = find_long(c, where + 2);
    if (row && row->type == DT_OPT_FLAG) {
        if (value)
            return dt_fail(c->err, DT_E_USAGE, "%s: takes no value", where);
        value = "yes";
    }
    if (row && !value && !(value = take_value(c, where)))
        return DT_E_USAGE;
    return dt_options_set(c->table, DT_OPT_CLI, c->settings, where + 2, value ? value : "", where,
                          c->err);
}

static const struct dt_option *
find_letter(const struct cursor *c, char letter)
{
    const struct dt_option *row;

    for (row = c->table; row->name; row++) {
        if (row->letter == letter && (row->scope & DT_OPT_CLI))
            return row;
    }
    return NULL;
}

/* -x, -x VALUE, -xVALUE, and flags in one word: -nx VALUE */
static enum dt_status
read_short(struct cursor *c, const char *arg)
{
    const char *p = arg + 1, *value;
    enum dt_status s = DT_OK;
    char where[3] = "-";

    for (; *p && s == DT_OK; p++) {
        const struct dt_option *row = find_letter(c, *p);

        where[1] = *p;
        if (!row)
            return dt_fail(c->err, DT_E_USAGE, "%.64s: unknown option; see --help",
                           p == arg + 1 && !p[1] ? where : arg);
        if (row->type != DT_OPT_FLAG) {
            value = p[1] ? p + 1 : take_value(c, where);
            return value ? dt_options_set(c->table, DT_OPT_CLI, c->settings, row->name, value,
                                          where, c->err)
                         : DT_E_USAGE;
        }
        s = dt_options_set(c->table, DT_OPT_CLI, c->settings, row->name, "yes", where, c->err);
    }
    return s;
}

static enum dt_status
read_positional(struct cursor *c, char *arg)
{
    if (!c->positional)
        return dt_fail(c->err, DT_E_USAGE, "%.100s: unexpected argument; see --help", arg);
    c->positional[c->n_positional++] = arg;
    return DT_OK;
}

static enum dt_status
read_all(struct cursor *c)
{
    bool options = true;
    enum dt_status s = DT_OK;

    for (c->at = 1; c->at < c->argc && s == DT_OK; c->at++) {
        char *arg = c->argv[c->at];

        if (!options || arg[0] != '-' || !arg[1])
            s = read_positional(c, arg);
        else if (arg[1] != '-')
            s = read_short(c, arg);
        else if (arg[2])
            s = read_long(c, arg);
        else
            options = false;
    }
    return s;
}

enum dt_status
dt_options_parse(const struct dt_option *table, void *settings, int argc, char **argv,
                 char ***positional, struct dt_error *err)
{
    struct cursor c = {
        .table = table, .settings = settings, .argc = argc, .argv = argv, .err = err};
    enum dt_status s;

    if (positional) {
        *positional = NULL;
        c.positional = calloc((size_t)(argc > 0 ? argc : 0) + 1, sizeof(*c.positional));
        if (!c.positional)
            return dt_fail(err, DT_E_NO_MEMORY, "out of memory");
    }
    s = read_all(&c);
    if (s == DT_OK && positional)
        *positional = c.positional;
    else
        free(c.positional);
    return s;
}
