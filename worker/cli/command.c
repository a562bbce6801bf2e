/*
 * command.c - which command, its options, its help. Threads: main alone.
 */
#include "worker/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/near.h"
#include "psd/optim/optimizer.h"

static const struct command commands[] = {
    {
        .name = "train",
        .usage = "--ps EP[,EP...] --job NAME --rank R --workers M [--data PATH] [options]",
        .summary = "be one worker of a job (--algorithm local: train alone, without psd)",
        .more = "Start one for each rank, in any order, on as many hosts as you like.\n"
                "SIGINT and SIGTERM: leave the job, --save, end by the signal.\n",
        .options = settings_train,
        .run = train_command,
    },
    {
        .name = "run",
        .usage = "[--ps-tasks P] [--workers M] [--data PATH] [options]",
        .summary =
            "a private cluster on this machine: psd and workers over ipc, then nothing is left",
        .more = "The psd program is looked for beside dtworker, in ../sbin and in PATH.\n",
        .options = settings_run,
        .run = run_command,
    },
    {
        .name = "compare",
        .usage = "[--algorithms A,B,...|all] [--workers M] [--data PATH] [options]",
        .summary =
            "which algorithm? the same training by each: a table, a plot, and what to choose",
        .more = "The options of dtworker run, which runs each of them, mean the same here.\n",
        .options = settings_compare,
        .run = compare_command,
    },
    {
        .name = "eval",
        .usage = "--model-file FILE --data PATH [options]",
        .summary = "loss and accuracy of saved values",
        .options = settings_eval,
        .run = eval_command,
    },
    {
        .name = "replay",
        .usage = "DIR [options]",
        .summary = "repeat a run that --record has written down, bit for bit, in one process",
        .more = "Where anything differs from the record, one line says what, and the exit code is "
                "65.\n",
        .options = settings_replay,
        .n_positional = 1,
        .run = replay_command,
    },
    {
        .name = "check",
        .usage = "PATH [options]",
        .summary = "read a data set and say what is in it",
        .options = settings_check,
        .n_positional = 1,
        .run = check_command,
    },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char exit_codes[] =
    "Exit codes: 0 done, 64 usage, 65 data or a loss that is not finite, 66 no input, 69 no "
    "answer\n"
    "from psd or too few file descriptors, 70 internal, 73 cannot create or the job is complete,\n"
    "74 I/O, 75 temporary (job failed, rank taken, no update acknowledged), 76 protocol,\n"
    "78 differs from the job.\n";

const struct command *
command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

int
command_fail(enum dt_status status, const struct dt_error *err)
{
    dt_log(DT_LOG_ERR, "%s", err->text[0] ? err->text : dt_status_text(status));
    return dt_status_exit_code(status);
}

static void
help_all(FILE *out)
{
    fputs("usage: dtworker COMMAND [options]\n\n", out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-7s %s\n", commands[i].name, commands[i].summary);
    fputs("\ndtworker COMMAND --help   the options of a command\n"
          "dtworker --version\n\n",
          out);
    fputs(exit_codes, out);
}

/* For tests and shell completion: the commands, and a line an option (option.h). */
static int
print_options(void)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct command *c = &commands[i];
        int len = c->n_positional ? (int)strcspn(c->usage, " ") : 0;

        printf("command|%s|%.*s|%s\n", c->name, len, c->usage, c->summary);
        dt_options_list(c->options, c->name, stdout);
    }
    return 0;
}

/* A row a line: what --window, the optimizers and the rates are where they are not given. */
static void
help_algorithms(FILE *out)
{
    const struct algorithm *a;
    char local[48], server[48];

    fputs("\nAlgorithms, and their own window, rules and rates:\n", out);
    fprintf(out, "  %-14s %6s  %-18s %s\n", "", "window", "on the worker", "on psd");
    for (unsigned i = 0; (a = algorithm_at(i)) != NULL; i++) {
        if (a->has_rank_rates)
            snprintf(local, sizeof(local), "gradient * %g / M", a->lr);
        else if (a->momentum > 0)
            snprintf(local, sizeof(local), "sgd %g, mu %g", a->lr, a->momentum);
        else if (a->local_optimizer)
            snprintf(local, sizeof(local), "%s %g", a->local_optimizer,
                     a->local_lr > 0 ? a->local_lr : a->lr);
        else
            snprintf(local, sizeof(local), "-");
        if (!a->server_optimizer)
            snprintf(server, sizeof(server), "-");
        else if (!optimizer_has_rate(a->server_optimizer))
            snprintf(server, sizeof(server), "%s", a->server_optimizer);
        else
            snprintf(server, sizeof(server), "%s %g", a->server_optimizer,
                     a->has_rank_rates ? 1 : a->lr);
        fprintf(out, "  %-14s %6u  %-18s %s\n", a->name, a->window, local, server);
    }
}

static void
help_one(const struct command *c, FILE *out)
{
    fprintf(out, "usage: dtworker %s %s\n\n%s\n\n", c->name, c->usage, c->summary);
    dt_options_help(c->options, out);
    if (c->options == settings_train || c->options == settings_run)
        help_algorithms(out);
    fprintf(out, "\n%s%s", c->more ? c->more : "", exit_codes);
}

static int
unknown(const char *name)
{
    struct dt_error err = {DT_OK, ""};
    const char *near = NULL;
    struct dt_near n;

    dt_near_init(&n, name);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (dt_near_offer(&n, commands[i].name))
            near = commands[i].name;
    }
    if (near)
        dt_fail(&err, DT_E_USAGE, "there is no command %.64s; did you mean %s?", name, near);
    else
        dt_fail(&err, DT_E_USAGE, "there is no command %.64s: try dtworker --help", name);
    return command_fail(DT_E_USAGE, &err);
}

static enum dt_status
check_positional(const struct command *c, char **positional, struct dt_error *err)
{
    unsigned n = 0;

    while (positional && positional[n])
        n++;
    if (n > c->n_positional)
        return dt_fail(err, DT_E_USAGE, "'%s' is no option of dtworker %s: try dtworker %s --help",
                       positional[c->n_positional], c->name, c->name);
    if (n < c->n_positional)
        return dt_fail(err, DT_E_USAGE, "usage: dtworker %s %s", c->name, c->usage);
    return DT_OK;
}

int
command_run(const struct command *c, int argc, char **argv)
{
    struct settings s = {0};
    struct dt_error err = {DT_OK, ""};
    char **positional = NULL;
    int code;

    enum dt_status r = dt_options_init(c->options, &s, &err);
    if (r == DT_OK)
        r = dt_options_parse(c->options, &s, argc, argv, &positional, &err);
    if (r == DT_OK && s.help) {
        help_one(c, stdout);
        code = 0;
        goto out;
    }
    if (r == DT_OK)
        r = check_positional(c, positional, &err);
    if (r != DT_OK) {
        code = command_fail(r, &err);
        goto out;
    }
    dt_log_set_level(settings_log_level(&s));
    code = c->run(&s, positional);
out:
    free(positional);
    dt_options_deinit(c->options, &s);
    return code;
}

int
command_main(int argc, char **argv)
{
    dt_log_open("dtworker", DT_LOG_INFO);
    if (argc < 2) {
        help_all(stderr);
        return dt_status_exit_code(DT_E_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_all(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("dtworker " PSD_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--print-options") == 0)
        return print_options();
    const struct command *c = command_find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    return command_run(c, argc - 1, argv + 1);
}
