/*
 * psctl_main.c - psctl: status, placement, kick, set, shutdown over a psd's admin socket. One thread.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/option.h"
#include "proto/base/near.h"
#include "proto/base/parse.h"
#include "proto/base/standard.h"
#include "worker/cli/psctl_ask.h"
#include "worker/cli/psctl_placement.h"
#include "worker/cli/psctl_set.h"
#include "worker/cli/psctl_status.h"

#define EXIT_USAGE 64

struct settings {
    struct dt_options_head head;
    char *admin;     /* owned */
    char *job;       /* owned */
    char *variable;  /* owned */
    int64_t at_step; /* -1: as soon as can be */
    bool json;
    bool help;
    bool version;
};

static const struct dt_option table[] = {
    {.name = "admin",
     .type = DT_OPT_STRING,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, admin),
     .arg = "EP",
     .help = "psd's admin socket (default: the only one in /run/psd or $XDG_RUNTIME_DIR/psd)"},
    {.name = "job",
     .type = DT_OPT_STRING,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, job),
     .arg = "JOB",
     .help = "kick, set: the job (default: the only one); placement: the job (default: all)"},
    {.name = "variable",
     .type = DT_OPT_STRING,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, variable),
     .arg = "NAME",
     .help = "set lr: of this variable (default: of all)"},
    {.name = "at-step",
     .type = DT_OPT_I64,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, at_step),
     .def = "-1",
     .min = -1,
     .max = 1e15,
     .arg = "N",
     .help = "set: from this step on; -1: as soon as can be"},
    {.name = "json",
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, json),
     .help = "one JSON object on stdout"},
    {.name = "help",
     .letter = 'h',
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, help),
     .help = "print this and exit"},
    {.name = "version",
     .letter = 'V',
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = offsetof(struct settings, version),
     .help = "print the version and exit"},
    {.name = NULL},
};

typedef enum dt_status command_fn(struct psctl *c, const struct settings *s, char **args,
                                  struct dt_error *err);

static enum dt_status
fetch_status(struct psctl *c, json_t **status, struct dt_error *err)
{
    struct dt_buffer body = {0};
    enum dt_status s = psctl_ask_status(c, &body, err);

    if (s == DT_OK && !(*status = body_decode(&body)))
        s = dt_fail(err, DT_E_PROTOCOL, "%s: the answer cannot be read", c->endpoint);
    dt_buffer_deinit(&body);
    return s;
}

static void
print_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
}

static enum dt_status
command_status(struct psctl *c, const struct settings *s, char **args, struct dt_error *err)
{
    json_t *status = NULL;
    enum dt_status code = fetch_status(c, &status, err);

    (void)args;
    if (code != DT_OK)
        return code;
    if (s->json)
        print_json(status);
    else
        status_print(status, stdout);
    json_decref(status);
    return DT_OK;
}

/* The name of the only job, or an error that names them all. */
static enum dt_status
choose_job(const json_t *status, const char *command, char name[DT_MAX_NAME + 1],
           struct dt_error *err)
{
    const json_t *jobs = json_object_get(status, "jobs");
    struct dt_buffer names = {0};
    enum dt_status s;
    size_t i;
    json_t *v;

    if (json_array_size(jobs) == 0)
        return dt_fail(err, DT_E_USAGE, "%s: psd has no job", command);
    json_array_foreach(jobs, i, v)
    {
        const char *text = json_string_value(json_object_get(v, "name"));

        snprintf(name, DT_MAX_NAME + 1, "%s", text ? text : "");
        dt_buffer_printf(&names, "%s%s", i ? ", " : "", name);
    }
    s = json_array_size(jobs) == 1
            ? DT_OK
            : dt_fail(err, DT_E_USAGE, "%s: psd has several jobs, choose one with --job: %s",
                      command, dt_buffer_str(&names));
    dt_buffer_deinit(&names);
    return s;
}

static enum dt_status
find_only_job(struct psctl *c, const char *command, char name[DT_MAX_NAME + 1],
              struct dt_error *err)
{
    json_t *status = NULL;
    enum dt_status s = fetch_status(c, &status, err);

    if (s == DT_OK)
        s = choose_job(status, command, name, err);
    json_decref(status);
    return s;
}

/* The job of --job, or the only one. */
static enum dt_status
find_job(struct psctl *c, const struct settings *s, const char *command, char name[DT_MAX_NAME + 1],
         struct dt_error *err)
{
    if (!s->job)
        return find_only_job(c, command, name, err);
    if (strlen(s->job) > DT_MAX_NAME)
        return dt_fail(err, DT_E_USAGE, "%s: the job's name is too long", command);
    snprintf(name, DT_MAX_NAME + 1, "%s", s->job);
    return DT_OK;
}

/* Prints what was done: a sentence, or {"ok": true, ...}. */
static void
print_done(const struct settings *s, json_t *object, const char *sentence)
{
    if (s->json)
        print_json(object);
    else
        puts(sentence);
    json_decref(object);
}

static enum dt_status
command_kick(struct psctl *c, const struct settings *s, char **args, struct dt_error *err)
{
    char name[DT_MAX_NAME + 1], sentence[DT_MAX_NAME + 64];
    enum dt_status code;
    uint64_t rank;

    if (!dt_parse_u64(args[0], &rank) || rank >= DT_MAX_RANKS)
        return dt_fail(err, DT_E_USAGE, "kick: %s is no rank (0 to %d)", args[0], DT_MAX_RANKS - 1);
    code = find_job(c, s, "kick", name, err);
    if (code == DT_OK)
        code = psctl_ask_kick(c, name, (uint32_t)rank, err);
    if (code != DT_OK)
        return code;
    snprintf(sentence, sizeof(sentence), "rank %llu of job %s is out", (unsigned long long)rank,
             name);
    print_done(s, json_pack("{s:b, s:s, s:I}", "ok", 1, "job", name, "rank", (json_int_t)rank),
               sentence);
    return DT_OK;
}

static enum dt_status
command_set(struct psctl *c, const struct settings *s, char **args, struct dt_error *err)
{
    struct dt_admin_set m;
    struct dt_buffer sentence = {0};
    uint64_t from;
    enum dt_status code = set_parse(args[0], s->variable, s->at_step, &m, err);

    if (code == DT_OK)
        code = find_job(c, s, "set", m.job, err);
    if (code == DT_OK)
        code = psctl_ask_set(c, &m, &from, err);
    if (code != DT_OK)
        return code;
    dt_buffer_printf(&sentence, "%s of job %s%s%s is %s from step %llu on", m.key, m.job,
                     m.variable[0] ? ", " : "", m.variable, strchr(args[0], '=') + 1,
                     (unsigned long long)from);
    print_done(s,
               json_pack("{s:b, s:s, s:s, s:f, s:s, s:I}", "ok", 1, "job", m.job, "key", m.key,
                         "value", m.value, "variable", m.variable, "step", (json_int_t)from),
               dt_buffer_str(&sentence));
    dt_buffer_deinit(&sentence);
    return DT_OK;
}

/* Names of all jobs; one that goes before it is asked for is left out. */
static enum dt_status
fetch_placements(struct psctl *c, json_t *jobs, struct dt_error *err)
{
    json_t *status = NULL, *job, *v;
    enum dt_status code = fetch_status(c, &status, err);
    size_t i;

    json_array_foreach(json_object_get(status, "jobs"), i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));

        code = placement_fetch(c, name ? name : "", &job, err);
        if (code == DT_OK)
            json_array_append_new(jobs, job);
        else if (code != DT_R_NO_JOB)
            break;
        code = DT_OK;
    }
    json_decref(status);
    return code;
}

/* Takes `jobs`. */
static void
print_placements(const struct settings *s, json_t *jobs)
{
    json_t *all = json_pack("{s:o}", "jobs", jobs), *v;
    size_t i;

    if (s->json)
        print_json(all);
    else if (json_array_size(jobs) == 0)
        puts("psd has no job");
    else
        json_array_foreach(jobs, i, v) placement_print(v, stdout);
    json_decref(all);
}

static enum dt_status
command_placement(struct psctl *c, const struct settings *s, char **args, struct dt_error *err)
{
    const char *name = args[0] ? args[0] : s->job;
    json_t *jobs = json_array(), *job;
    enum dt_status code;

    if (name && strlen(name) > DT_MAX_NAME) {
        code = dt_fail(err, DT_E_USAGE, "placement: the job's name is too long");
    } else if (name) {
        code = placement_fetch(c, name, &job, err);
        if (code == DT_OK)
            json_array_append_new(jobs, job);
    } else {
        code = fetch_placements(c, jobs, err);
    }
    if (code == DT_OK)
        print_placements(s, jobs);
    else
        json_decref(jobs);
    return code;
}

static enum dt_status
command_shutdown(struct psctl *c, const struct settings *s, char **args, struct dt_error *err)
{
    enum dt_status code = psctl_ask_shutdown(c, err);

    (void)args;
    if (code == DT_OK)
        print_done(s, json_pack("{s:b}", "ok", 1), "psd is stopping");
    return code;
}

static const struct command {
    const char *name;
    unsigned min_args, max_args;
    const char *takes; /* what it takes, for the one who gave something else */
    command_fn *run;
    const char *usage;
} commands[] = {
    {"status", 0, 0, "no argument", command_status,
     "status            jobs, members, step, and who waits for whom"},
    {"placement", 0, 1, "at most one argument, the job", command_placement,
     "placement [JOB]   the variables of all jobs or of one, and which shard holds them"},
    {"kick", 1, 1, "one argument, the rank", command_kick,
     "kick RANK         take a worker out of its job"},
    {"set", 1, 1, "one argument, KEY=VALUE", command_set,
     "set KEY=VALUE     lr, max-staleness or staleness-bound of a live job, from a step on"},
    {"shutdown", 0, 0, "no argument", command_shutdown, "shutdown          stop psd cleanly"},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
print_help(FILE *out)
{
    size_t i;

    fprintf(out, "usage: psctl [--admin EP] [--json] COMMAND\n\n");
    for (i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %s\n", commands[i].usage);
    fprintf(out, "\n");
    dt_options_help(table, out);
    fprintf(out, "\nExit status: 0, 64 usage, 69 no psd, no answer within 3 s or too few file "
                 "descriptors, 76 protocol, 77 not "
                 "authorised.\n");
}

/* For tests and shell completion: the commands, and a line an option (option.h). */
static int
print_options(void)
{
    size_t i;

    for (i = 0; i < N_COMMANDS; i++)
        printf("command|%s||%s\n", commands[i].name, commands[i].usage);
    dt_options_list(table, "", stdout);
    return fflush(stdout) == 0 ? 0 : 74;
}

static enum dt_status
unknown_command(const char *name, struct dt_error *err)
{
    const char *near = NULL;
    struct dt_near n;
    size_t i;

    dt_near_init(&n, name);
    for (i = 0; i < N_COMMANDS; i++) {
        if (dt_near_offer(&n, commands[i].name))
            near = commands[i].name;
    }
    return near ? dt_fail(err, DT_E_USAGE, "unknown command %.64s; did you mean %s?", name, near)
                : dt_fail(err, DT_E_USAGE,
                          "unknown command %.64s: status, placement, kick, set or shutdown", name);
}

static enum dt_status
find_command(char **args, const struct command **found, struct dt_error *err)
{
    unsigned n = 0;
    size_t i;

    if (!args || !args[0])
        return dt_fail(
            err, DT_E_USAGE,
            "no command: status, placement, kick RANK, set KEY=VALUE or shutdown (see --help)");
    while (args[1 + n])
        n++;
    for (i = 0; i < N_COMMANDS; i++) {
        if (strcmp(args[0], commands[i].name) != 0)
            continue;
        *found = &commands[i];
        if (n >= commands[i].min_args && n <= commands[i].max_args)
            return DT_OK;
        return dt_fail(err, DT_E_USAGE, "%s takes %s (see --help)", args[0], commands[i].takes);
    }
    return unknown_command(args[0], err);
}

static enum dt_status
run(const struct settings *s, char **args, struct dt_error *err)
{
    const struct command *command = NULL;
    struct psctl client = {0};
    enum dt_status code = find_command(args, &command, err);

    if (code != DT_OK)
        return code;
    code = psctl_open(&client, s->admin, err);
    if (code == DT_OK)
        code = command->run(&client, s, args + 1, err);
    psctl_close(&client);
    return code;
}

/* psd's word for "you named something that is not there" is the user's mistake here. */
static int
exit_code(enum dt_status code)
{
    if (code == DT_R_NO_JOB || code == DT_R_NO_VARIABLE || code == DT_R_BAD_VALUE)
        return EXIT_USAGE;
    return dt_status_exit_code(code);
}

int
main(int argc, char **argv)
{
    struct settings s = {0};
    struct dt_error err = {0};
    char **args = NULL;
    enum dt_status code;

    dt_standard_files_open();
    if (argc == 2 && strcmp(argv[1], "--print-options") == 0)
        return print_options();
    code = dt_options_init(table, &s, &err);
    if (code == DT_OK)
        code = dt_options_parse(table, &s, argc, argv, &args, &err);
    if (code == DT_OK && s.help)
        print_help(stdout);
    else if (code == DT_OK && s.version)
        printf("psctl %s\n", PSD_VERSION);
    else if (code == DT_OK)
        code = run(&s, args, &err);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == DT_OK)
        code = dt_fail(&err, DT_E_IO, "standard output could not be written");
    if (code != DT_OK)
        fprintf(stderr, "psctl: %s\n", err.text);
    free(args);
    dt_options_deinit(table, &s);
    return code == DT_OK ? 0 : exit_code(code);
}
