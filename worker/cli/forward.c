/*
 * forward.c - the options of a command that the commands it starts get as they are: back from fields to text.
 *
 * Invariant: an option is handed on when the other command knows it, it was given or its default differs there,
 * and the one that starts it does not set it itself. Threads: main alone.
 */
#include "worker/cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/buffer.h"

static const char *const set_by_run[] = {"workers", "threads", "cpus",      "step-delay", "save",
                                         "metrics", "json",    "log-level", NULL};
const struct settings_route settings_run_to_train = {settings_run, settings_train, set_by_run};

/* Their defaults differ, and who trains alone waits for nobody. */
static const char *const set_for_local[] = {"workers",       "threads",   "cpus", "step-delay",
                                            "save",          "metrics",   "json", "log-level",
                                            "start-timeout", "retry-for", NULL};
const struct settings_route settings_run_to_local = {settings_run, settings_train, set_for_local};

static bool
is_own(const char *const *own, const char *name)
{
    for (; *own; own++) {
        if (strcmp(*own, name) == 0)
            return true;
    }
    return false;
}

static const struct dt_option *
find_row(const struct dt_option *table, const char *name)
{
    for (; table->name; table++) {
        if (strcmp(table->name, name) == 0)
            return table;
    }
    return NULL;
}

static bool
same_default(const struct dt_option *a, const struct dt_option *b)
{
    return (!a->def && !b->def) || (a->def && b->def && strcmp(a->def, b->def) == 0);
}

/* The index'th of "a|b|c". */
static char *
choice(const char *choices, int index)
{
    for (; index > 0; index--)
        choices = strchr(choices, '|') + 1;
    return strndup(choices, strcspn(choices, "|"));
}

/* "a,b,c" (allocated); NULL when memory is short. */
static char *
joined(char *const *list)
{
    struct dt_buffer text = {0};

    for (unsigned i = 0; list && list[i]; i++)
        dt_buffer_printf(&text, "%s%s", i ? "," : "", list[i]);
    char *copy = text.failed ? NULL : strdup(dt_buffer_str(&text));
    dt_buffer_deinit(&text);
    return copy;
}

/* The value of `row` as text (allocated); NULL when memory is short. */
static char *
value_text(const struct dt_option *row, const struct settings *s)
{
    const char *p = (const char *)s + row->offset;
    char *text = NULL;
    int n = 0;

    switch (row->type) {
    case DT_OPT_U64:
    case DT_OPT_BYTES:
        n = asprintf(&text, "%llu", (unsigned long long)*(const uint64_t *)p);
        break;
    case DT_OPT_I64:
        n = asprintf(&text, "%lld", (long long)*(const int64_t *)p);
        break;
    case DT_OPT_DURATION:
        n = asprintf(&text, "%lldms", (long long)*(const int64_t *)p);
        break;
    case DT_OPT_DOUBLE:
        n = asprintf(&text, "%.17g", *(const double *)p);
        break;
    case DT_OPT_ENUM:
        return choice(row->choices, *(const int *)p);
    case DT_OPT_STRING:
        return strdup(*(char *const *)p);
    case DT_OPT_CSV:
        return joined(*(char *const *const *)p);
    case DT_OPT_FLAG:
    case DT_OPT_LIST:
        break; /* flags have no value, lists are not shared */
    }
    return n < 0 ? NULL : text;
}

/* "--name=value", "--name" of a flag; NULL when memory is short. */
static char *
option_text(const struct dt_option *row, const struct settings *s)
{
    char *text = NULL;
    char *value;

    if (row->type == DT_OPT_FLAG)
        return asprintf(&text, "--%s", row->name) < 0 ? NULL : text;
    value = value_text(row, s);
    if (!value || asprintf(&text, "--%s=%s", row->name, value) < 0)
        text = NULL;
    free(value);
    return text;
}

bool
settings_forward(const struct settings *s, const struct settings_route *route, char **argv,
                 unsigned *n, unsigned max)
{
    for (const struct dt_option *row = route->from; row->name; row++) {
        const struct dt_option *to = find_row(route->to, row->name);
        if (!to || is_own(route->own, row->name))
            continue;
        if (!dt_options_given(route->from, s, row->name) && same_default(row, to))
            continue;
        char *text = *n < max ? option_text(row, s) : NULL;
        if (!text)
            return false;
        argv[(*n)++] = text;
    }
    return true;
}
