/*
 * command.h - the commands of dtworker: a table of names, options and functions.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "worker/cli/settings.h"

struct command {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *more;    /* text behind the options in --help, or NULL */
    const struct dt_option *options;
    unsigned n_positional;
    int (*run)(struct settings *s, char **positional); /* returns the exit code */
};

/* The whole program: parse, dispatch. Returns the exit code. */
int command_main(int argc, char **argv);
/* Parse the options of `c` (argv[0] is its name) and run it. */
int command_run(const struct command *c, int argc, char **argv);
const struct command *command_find(const char *name); /* NULL: unknown */

/* Can the data be read, and has the model the shape for them? Nothing else is opened. */
enum dt_status train_check(const struct settings *s, struct dt_error *err);
int train_command(struct settings *s, char **positional);
int run_command(struct settings *s, char **positional);
int compare_command(struct settings *s, char **positional);
int eval_command(struct settings *s, char **positional);
int replay_command(struct settings *s, char **positional);
int check_command(struct settings *s, char **positional);

/* Say the error in one line on stderr; returns the exit code of `status`. */
int command_fail(enum dt_status status, const struct dt_error *err);

#endif
