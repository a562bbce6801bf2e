/*
 * option.h - one option table drives the command line, the INI file, -o key=value, --help,
 * --dump-config and the documentation test.
 *
 * A row names a field of a settings struct by offset. Strings are owned by the struct (strdup;
 * freed by dt_options_deinit); a list is a NULL-terminated array of owned strings.
 */
#ifndef DT_BASE_OPTION_H
#define DT_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/base/error.h"

enum dt_option_type {
    DT_OPT_FLAG,     /* bool; takes no argument on the command line */
    DT_OPT_U64,      /* uint64_t in [min, max] */
    DT_OPT_I64,      /* int64_t */
    DT_OPT_DOUBLE,   /* double */
    DT_OPT_DURATION, /* int64_t milliseconds */
    DT_OPT_BYTES,    /* uint64_t */
    DT_OPT_STRING,   /* char * */
    DT_OPT_ENUM,     /* int, one of `choices` ("a|b|c"): the index */
    DT_OPT_LIST,     /* char ** NULL-terminated; each occurrence adds (command line) */
    DT_OPT_CSV,      /* char ** NULL-terminated; one comma-separated text replaces all */
};

enum dt_option_scope {
    DT_OPT_CLI = 1,    /* --name on the command line */
    DT_OPT_FILE = 2,   /* name = value in the INI file (underscores for dashes) and -o name=value */
    DT_OPT_RELOAD = 4, /* may change at SIGHUP */
};

struct dt_option {
    const char *name; /* with dashes, e.g. "start-timeout" */
    char letter;      /* short form, or 0 */
    enum dt_option_type type;
    unsigned scope;
    size_t offset;
    const char *def;     /* default as text; NULL = empty/false/0 */
    double min, max;     /* numbers; both 0 = any; max < min = no upper bound */
    const char *choices; /* DT_OPT_ENUM; of a string: what a shell may offer, not checked */
    const char *arg;     /* how the argument is called in --help, e.g. "MS" */
    const char *help;    /* one line */
};

/* The table ends with a row whose name is NULL. */
enum dt_status dt_options_init(const struct dt_option *table, void *settings, struct dt_error *err);
void dt_options_deinit(const struct dt_option *table, void *settings);

/* Set one option by name from text. `where` ("--lr", "psd.conf:12") leads the error text. An unknown
 * name is an error that suggests the nearest one ("did you mean --lease?"). */
enum dt_status dt_options_set(const struct dt_option *table, unsigned scope, void *settings,
                              const char *name, const char *value, const char *where,
                              struct dt_error *err);

/* Parse argv[1..]. Accepts --name VALUE, --name=VALUE, -x VALUE, -xVALUE, "--" and (if `positional`
 * is not NULL) positional arguments, which are returned as a NULL-terminated array owned by the
 * caller (array only; the strings stay argv's). DT_E_USAGE with one clear line on error. */
enum dt_status dt_options_parse(const struct dt_option *table, void *settings, int argc,
                                char **argv, char ***positional, struct dt_error *err);

/* Was the option given explicitly since init? (false for defaults) */
bool dt_options_given(const struct dt_option *table, const void *settings, const char *name);

void dt_options_help(const struct dt_option *table, FILE *out); /* the option lines of --help */
/* The keys of an INI file, each with its help as a comment: `key = value` where it was given, else
 * `#key = default`. What is printed sets the same settings again. */
void dt_options_dump(const struct dt_option *table, const void *settings, FILE *out);

/* For tests and shell completion, a line a row:
 * option|COMMAND|NAME|LETTER or -|TYPE|SCOPE (c, f, r)|ARG|DEFAULT|CHOICES, by blanks|HELP */
void dt_options_list(const struct dt_option *table, const char *command, FILE *out);

/* One option as "key = value"; a list's elements stand behind each other. Owned by the caller; NULL
 * when memory is short. */
char *dt_option_text(const struct dt_option *row, const void *settings);
/* Copy one option that is neither text nor list from one settings struct to another. */
void dt_option_copy(const struct dt_option *row, void *to, const void *from);

/* The settings struct must start with this header (bitmap of options given). */
struct dt_options_head {
    unsigned long given[4];
};

#endif
