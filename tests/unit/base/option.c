/*
 * option.c - one table drives command line, file, help and dump; what every error says.
 */
#include "proto/base/option.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(option, .timeout = 40);

struct settings {
    struct dt_options_head head;
    bool verbose;
    bool dry;
    uint64_t shards;
    int64_t shift;
    double lr;
    int64_t lease_ms;
    uint64_t quota;
    char *save;
    int level;
    char **listen;
    char **ports;
    char *state_dir;
};

#define BOTH (DT_OPT_CLI | DT_OPT_FILE)
#define ROW(name_, letter_, type_, scope_, field_, ...)                                            \
    {                                                                                              \
        .name = (name_), .letter = (letter_), .type = (type_), .scope = (scope_),                  \
        .offset = offsetof(struct settings, field_), __VA_ARGS__                                   \
    }

static const struct dt_option table[] = {
    ROW("verbose", 'v', DT_OPT_FLAG, BOTH, verbose, .help = "say more"),
    ROW("dry-run", 'n', DT_OPT_FLAG, DT_OPT_CLI, dry, .help = "change nothing"),
    ROW("shards", 's', DT_OPT_U64, BOTH, shards, .def = "2", .min = 1, .max = 64, .arg = "N",
        .help = "service threads"),
    ROW("shift", 0, DT_OPT_I64, BOTH, shift, .help = "any whole number"),
    ROW("lr", 0, DT_OPT_DOUBLE, BOTH, lr, .def = "0.1", .min = 1e-9, .max = 0, .help = "rate"),
    ROW("lease-time", 0, DT_OPT_DURATION, BOTH, lease_ms, .def = "10s", .min = 100, .max = 60000,
        .arg = "TIME", .help = "a worker that is silent for so long is lost"),
    ROW("quota", 0, DT_OPT_BYTES, BOTH, quota, .def = "64KiB", .help = "memory"),
    ROW("save", 0, DT_OPT_STRING, BOTH, save, .arg = "FILE", .help = "write the values here"),
    ROW("level", 0, DT_OPT_ENUM, BOTH, level, .def = "info", .choices = "err|info|debug",
        .help = "log level"),
    ROW("listen", 'l', DT_OPT_LIST, BOTH, listen, .def = "tcp://here", .arg = "EP",
        .help = "endpoint, may be repeated"),
    ROW("ports", 0, DT_OPT_CSV, BOTH, ports, .def = "1,2", .arg = "P,...", .help = "ports"),
    ROW("state-dir", 0, DT_OPT_STRING, DT_OPT_FILE, state_dir, .help = "files go here"),
    {.name = NULL},
};

static void
init(struct settings *s)
{
    struct dt_error err;

    memset(s, 0xa5, sizeof(*s)); /* init takes a struct that was never touched */
    cr_assert_eq(dt_options_init(table, s, &err), DT_OK, "%s", err.text);
}

static void
deinit(struct settings *s)
{
    dt_options_deinit(table, s);
}

static enum dt_status
parse(struct settings *s, char ***positional, struct dt_error *err, const char *const *args)
{
    char *argv[32] = {(char *)(uintptr_t) "prog"};
    int argc = 1;

    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    memset(err, 0, sizeof(*err));
    return dt_options_parse(table, s, argc, argv, positional, err);
}
#define PARSE(s, err, ...) parse((s), NULL, (err), (const char *const[]){__VA_ARGS__, NULL})

/* The command line is refused with exactly this text. */
static void
refused(const char *text, const char *const *args)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_expect_eq(parse(&s, NULL, &err, args), DT_E_USAGE);
    cr_expect_eq(err.code, DT_E_USAGE);
    cr_expect_str_eq(err.text, text);
    deinit(&s);
}
#define REFUSED(text, ...) refused((text), (const char *const[]){__VA_ARGS__, NULL})

static void
refused_in_file(const char *text, const char *name, const char *value)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_expect_eq(dt_options_set(table, DT_OPT_FILE, &s, name, value, "psd.conf:12", &err),
                 DT_E_CONFIG);
    cr_expect_eq(err.code, DT_E_CONFIG);
    cr_expect_str_eq(err.text, text);
    deinit(&s);
}

Test(option, defaults)
{
    struct settings s;

    init(&s);
    cr_assert_not(s.verbose);
    cr_assert_eq(s.shards, 2);
    cr_assert_eq(s.shift, 0);
    cr_assert_eq(s.lr, 0.1);
    cr_assert_eq(s.lease_ms, 10000);
    cr_assert_eq(s.quota, 65536);
    cr_assert_null(s.save);
    cr_assert_eq(s.level, 1);
    cr_assert_str_eq(s.listen[0], "tcp://here");
    cr_assert_null(s.listen[1]);
    cr_assert_str_eq(s.ports[1], "2");
    cr_assert_not(dt_options_given(table, &s, "shards"));
    deinit(&s);
    cr_assert_null(s.listen);
    deinit(&s); /* twice is harmless */
}

Test(option, every_type_from_the_command_line)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_assert_eq(PARSE(&s, &err, "--verbose", "--shards", "5", "--shift=-7", "--lr", "2.5e-3",
                       "--lease-time=250ms", "--quota", "1MiB", "--save=a=b", "--level", "debug",
                       "--ports", "7, 8,9"),
                 DT_OK, "%s", err.text);
    cr_assert(s.verbose);
    cr_assert_eq(s.shards, 5);
    cr_assert_eq(s.shift, -7);
    cr_assert_eq(s.lr, 2.5e-3);
    cr_assert_eq(s.lease_ms, 250);
    cr_assert_eq(s.quota, 1 << 20);
    cr_assert_str_eq(s.save, "a=b");
    cr_assert_eq(s.level, 2);
    cr_assert_str_eq(s.ports[0], "7");
    cr_assert_str_eq(s.ports[1], "8");
    cr_assert_str_eq(s.ports[2], "9");
    cr_assert_null(s.ports[3]);
    cr_assert(dt_options_given(table, &s, "lease-time"));
    cr_assert_not(dt_options_given(table, &s, "listen"));
    cr_assert_not(dt_options_given(table, &s, "no-such"));
    deinit(&s);
}

Test(option, short_forms)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_assert_eq(PARSE(&s, &err, "-s", "3", "-ltcp://a", "-nvl", "tcp://b"), DT_OK, "%s", err.text);
    cr_assert_eq(s.shards, 3);
    cr_assert(s.verbose && s.dry);
    cr_assert_str_eq(s.listen[0], "tcp://a");
    cr_assert_str_eq(s.listen[1], "tcp://b");
    cr_assert_null(s.listen[2]);
    cr_assert_eq(PARSE(&s, &err, "-s4"), DT_OK);
    cr_assert_eq(s.shards, 4);
    deinit(&s);
}

Test(option, the_last_value_wins_and_negative_numbers_are_values)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_assert_eq(PARSE(&s, &err, "--save", "a", "--save", "b", "--shift", "-3"), DT_OK);
    cr_assert_str_eq(s.save, "b");
    cr_assert_eq(s.shift, -3);
    cr_assert_eq(PARSE(&s, &err, "--save="), DT_OK);
    cr_assert_str_eq(s.save, "");
    deinit(&s);
}

Test(option, list_replaces_its_default_then_adds)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_assert_eq(dt_options_set(table, DT_OPT_FILE, &s, "listen", "a", "f:1", &err), DT_OK);
    cr_assert_eq(dt_options_set(table, DT_OPT_FILE, &s, "listen", "b", "f:2", &err), DT_OK);
    cr_assert_str_eq(s.listen[0], "a");
    cr_assert_str_eq(s.listen[1], "b");
    cr_assert_null(s.listen[2]);
    cr_assert_eq(dt_options_set(table, DT_OPT_FILE, &s, "ports", "", "f:3", &err), DT_OK);
    cr_assert_null(s.ports);
    deinit(&s);
}

Test(option, positional_arguments)
{
    struct settings s;
    struct dt_error err;
    char **words = NULL;

    init(&s);
    cr_assert_eq(parse(&s, &words, &err,
                       (const char *const[]){"status", "-v", "-", "--", "--shards", "-x", NULL}),
                 DT_OK, "%s", err.text);
    cr_assert(s.verbose);
    cr_assert_str_eq(words[0], "status");
    cr_assert_str_eq(words[1], "-");
    cr_assert_str_eq(words[2], "--shards");
    cr_assert_str_eq(words[3], "-x");
    cr_assert_null(words[4]);
    free(words);
    cr_assert_eq(parse(&s, &words, &err, (const char *const[]){NULL}), DT_OK);
    cr_assert_null(words[0]);
    free(words);
    cr_assert_eq(parse(&s, &words, &err, (const char *const[]){"a", "--what", NULL}), DT_E_USAGE);
    cr_assert_null(words);
    deinit(&s);
}

Test(option, no_arguments_at_all)
{
    struct settings s;
    struct dt_error err;
    char *argv[] = {NULL};

    init(&s);
    cr_assert_eq(dt_options_parse(table, &s, 0, argv, NULL, &err), DT_OK);
    deinit(&s);
}

Test(option, unknown_options_suggest_the_nearest)
{
    REFUSED("--shard: unknown option; did you mean --shards?", "--shard", "3");
    REFUSED("--shrads: unknown option; did you mean --shards?", "--shrads=3");
    REFUSED("--lease: unknown option; did you mean --lease-time?", "--lease", "3");
    REFUSED("--leasetime: unknown option; did you mean --lease-time?", "--leasetime", "3");
    REFUSED("--frobnicate: unknown option; see --help", "--frobnicate");
    REFUSED("--x: unknown option; see --help", "--x");
    REFUSED("-q: unknown option; see --help", "-q");
    REFUSED("-vq: unknown option; see --help", "-vq");
}

Test(option, very_long_options_are_cut)
{
    char word[3000];
    struct settings s;
    struct dt_error err;

    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = 0;
    memcpy(word, "--", 2);
    init(&s);
    cr_assert_eq(PARSE(&s, &err, word), DT_E_USAGE);
    cr_assert_not_null(strstr(err.text, "...: unknown option; see --help"));
    cr_assert_eq(dt_options_set(table, DT_OPT_FILE, &s, word, "1", "f:1", &err), DT_E_CONFIG);
    word[0] = word[1] = 'b';
    cr_assert_eq(PARSE(&s, &err, "--shards", word), DT_E_USAGE);
    cr_assert_not_null(strstr(err.text, "must be a whole number from 1 to 64"));
    deinit(&s);
}

Test(option, command_line_errors_in_one_line)
{
    REFUSED("--shards: needs a value", "--shards");
    REFUSED("-s: needs a value", "-s");
    REFUSED("--save: needs a value, and '--verbose' looks like an option", "--save", "--verbose");
    REFUSED("--verbose: takes no value", "--verbose=yes");
    REFUSED("extra: unexpected argument; see --help", "extra");
    REFUSED("--state-dir: can only be set in the configuration file", "--state-dir", "x");
    REFUSED("--shards: '65' must be a whole number from 1 to 64", "--shards", "65");
    REFUSED("--shards: '0' must be a whole number from 1 to 64", "--shards=0");
    REFUSED("-s: 'x' must be a whole number from 1 to 64", "-sx");
    REFUSED("--shift: '1.5' must be a whole number", "--shift", "1.5");
    REFUSED("--lr: '0' must be a number of at least 1e-09", "--lr", "0");
    REFUSED("--lr: 'nan' must be a number of at least 1e-09", "--lr", "nan");
    REFUSED("--lease-time: '2h' must be a time (250ms, 10s, 2min, 1h) from 100 ms to 60000 ms",
            "--lease-time", "2h");
    REFUSED("--quota: '1.5' must be a size (4096, 64KiB, 1MiB, 2GiB)", "--quota", "1.5");
    REFUSED("--level: 'warn' must be one of err|info|debug", "--level", "warn");
    REFUSED("--level: 'inf' must be one of err|info|debug", "--level", "inf");
    REFUSED("--level: '' must be one of err|info|debug", "--level=");
    REFUSED("--ports: '1,,2' must not have an empty element", "--ports", "1,,2");
    REFUSED("--ports: '1,' must not have an empty element", "--ports", "1,");
}

Test(option, file_errors_name_line_and_key)
{
    refused_in_file("psd.conf:12: shards: '99' must be a whole number from 1 to 64", "shards",
                    "99");
    refused_in_file("psd.conf:12: verbose: 'maybe' must be yes or no", "verbose", "maybe");
    refused_in_file("psd.conf:12: unknown key leese_time; did you mean lease_time?", "leese_time",
                    "1");
    refused_in_file("psd.conf:12: unknown key lease-time; did you mean lease_time?", "lease-time",
                    "1");
    refused_in_file("psd.conf:12: unknown key zzzzzz", "zzzzzz", "1");
    refused_in_file("psd.conf:12: unknown key ", "", "1");
    refused_in_file("psd.conf:12: dry_run can only be given on the command line, as --dry-run",
                    "dry_run", "yes");
}

Test(option, a_refused_value_changes_nothing)
{
    struct settings s;
    struct dt_error err;

    init(&s);
    cr_assert_eq(PARSE(&s, &err, "--shards", "99"), DT_E_USAGE);
    cr_assert_eq(PARSE(&s, &err, "--ports", "5,,"), DT_E_USAGE);
    cr_assert_eq(PARSE(&s, &err, "--level", "x"), DT_E_USAGE);
    cr_assert_eq(s.shards, 2);
    cr_assert_str_eq(s.ports[0], "1");
    cr_assert_eq(s.level, 1);
    cr_assert_not(dt_options_given(table, &s, "shards"));
    deinit(&s);
}

Test(option, a_bad_default_is_our_bug)
{
    static const struct dt_option bad[] = {
        ROW("save", 0, DT_OPT_STRING, BOTH, save, .def = "x"),
        ROW("shards", 0, DT_OPT_U64, BOTH, shards, .def = "many"),
        {.name = NULL},
    };
    struct settings s;
    struct dt_error err;

    cr_assert_eq(dt_options_init(bad, &s, &err), DT_E_INTERNAL);
    cr_assert_str_eq(err.text, "default of --shards: 'many' must be a whole number");
    dt_options_deinit(bad, &s);
}

/* What `print` writes; free it. */
static char *
printed(void (*print)(const void *settings, FILE *out), const void *settings)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    print(settings, out);
    fclose(out);
    return text;
}

static void
print_dump(const void *settings, FILE *out)
{
    dt_options_dump(table, settings, out);
}

static void
print_help(const void *settings, FILE *out)
{
    (void)settings;
    dt_options_help(table, out);
}

Test(option, dump)
{
    struct settings s;
    struct dt_error err;
    char *text;

    init(&s);
    cr_assert_eq(PARSE(&s, &err, "-v", "-n", "--lr", "0.30000000000000004", "--lease-time", "1.5s",
                       "--quota=3MiB", "-la", "-lb"),
                 DT_OK);
    text = printed(print_dump, &s);
    cr_assert_str_eq(text, "\n# say more\n"
                           "verbose = yes\n"
                           "\n# service threads\n"
                           "#shards = 2\n"
                           "\n# any whole number\n"
                           "#shift = 0\n"
                           "\n# rate\n"
                           "lr = 0.30000000000000004\n"
                           "\n# a worker that is silent for so long is lost\n"
                           "lease_time = 1500ms\n"
                           "\n# memory\n"
                           "quota = 3MiB\n"
                           "\n# write the values here\n"
                           "#save =\n"
                           "\n# log level\n"
                           "#level = info\n"
                           "\n# endpoint, may be repeated\n"
                           "listen = a\n"
                           "listen = b\n"
                           "\n# ports\n"
                           "#ports = 1,2\n"
                           "\n# files go here\n"
                           "#state_dir =\n");
    free(text);
    deinit(&s);
}

static void
print_list(const void *settings, FILE *out)
{
    (void)settings;
    dt_options_list(table, "run", out);
}

Test(option, list_has_a_line_for_each_option)
{
    char *text = printed(print_list, NULL);

    cr_assert_not_null(strstr(text, "option|run|verbose|v|flag|cf||||say more\n"), "%s", text);
    cr_assert_not_null(strstr(text, "option|run|dry-run|n|flag|c||||change nothing\n"));
    cr_assert_not_null(
        strstr(text, "option|run|level|-|choice|cf||info|err info debug|log level\n"));
    cr_assert_not_null(strstr(text, "option|run|quota|-|bytes|cf||64KiB||memory\n"));
    cr_assert_not_null(strstr(text, "option|run|state-dir|-|string|f||||files go here\n"));
    free(text);
}

/* Every line of a dump, set in a fresh struct, gives the same dump. */
Test(option, dump_is_read_back)
{
    struct settings s, again;
    struct dt_error err;
    char *first, *second, *copy, *line, *save;

    init(&s);
    init(&again);
    cr_assert_eq(PARSE(&s, &err, "--lr", "1e-7", "--shift=-9", "--save", "x y", "-la", "--level",
                       "err", "--quota", "5000", "--lease-time", "60s"),
                 DT_OK);
    first = printed(print_dump, &s);
    copy = strdup(first);
    for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *eq = strstr(line, " = ");

        if (line[0] == '#')
            continue;
        *eq = 0;
        cr_assert_eq(dt_options_set(table, DT_OPT_FILE, &again, line, eq + 3, "dump", &err), DT_OK,
                     "%s", err.text);
    }
    second = printed(print_dump, &again);
    cr_assert_str_eq(first, second);
    free(first);
    free(second);
    free(copy);
    deinit(&s);
    deinit(&again);
}

Test(option, help_has_a_line_for_each_option)
{
    char *text = printed(print_help, NULL), *line, *save;

    cr_assert_not_null(strstr(text, "  -v, --verbose             say more\n"), "%s", text);
    cr_assert_not_null(strstr(text, "  -s, --shards N            service threads (default 2)\n"));
    cr_assert_not_null(strstr(text, "      --save FILE           write the values here\n"));
    cr_assert_not_null(strstr(text, "      --level err|info|debug\n"
                                    "                            log level (default info)\n"),
                       "%s", text);
    cr_assert_null(strstr(text, "state-dir"));
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        cr_assert_leq(strlen(line), 79, "%s", line);
    free(text);
}
