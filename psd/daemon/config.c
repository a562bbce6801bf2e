/*
 * config.c - the option table of psd, and the order in which its sources are applied.
 *
 * Invariant: every setting is a row of config_table; nothing else is accepted. Main thread.
 */
#include "psd/daemon/config.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/parse.h"
#include "proto/wire/limits.h"

#define DEFAULT_LISTEN "tcp://127.0.0.1:2222"
#define DEFAULT_MAX_SHARDS 4
#define BOTH (DT_OPT_CLI | DT_OPT_FILE)
#define AT(field) offsetof(struct config, field)

const struct dt_option config_table[] = {
    {.name = "file",
     .letter = 'f',
     .type = DT_OPT_STRING,
     .scope = DT_OPT_CLI,
     .offset = AT(file),
     .arg = "FILE",
     .help = "read settings from this INI file"},
    {.name = "option",
     .letter = 'o',
     .type = DT_OPT_LIST,
     .scope = DT_OPT_CLI,
     .offset = AT(options),
     .arg = "KEY=VALUE",
     .help = "set one key as in the file; may be repeated"},
    {.name = "check",
     .letter = 'n',
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = AT(check),
     .help = "check the configuration and exit (0, or 78 with the reason)"},
    {.name = "dump-config",
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = AT(dump),
     .help = "print the settings as an INI file and exit; what is not set is a comment"},
    {.name = "listen",
     .letter = 'l',
     .type = DT_OPT_LIST,
     .scope = BOTH,
     .offset = AT(listen),
     .arg = "EP",
     .def = DEFAULT_LISTEN,
     .help = "endpoint for workers, tcp://HOST:PORT or ipc://PATH; may be repeated"},
    {.name = "admin",
     .type = DT_OPT_STRING,
     .scope = BOTH,
     .offset = AT(admin),
     .arg = "EP",
     .help = "ipc endpoint for psctl, or none (default /run/psd/PORT.sock for root, else "
             "$XDG_RUNTIME_DIR/psd/PORT.sock)"},
    {.name = "shards",
     .type = DT_OPT_U64,
     .scope = BOTH,
     .offset = AT(shards),
     .def = "0",
     .min = 0,
     .max = DT_MAX_SHARDS,
     .arg = "N",
     .help = "service threads; 0: one for each CPU, at most 4"},
    {.name = "shard-ports",
     .type = DT_OPT_ENUM,
     .scope = BOTH,
     .offset = AT(shard_ports),
     .def = "ephemeral",
     .choices = "ephemeral|consecutive",
     .arg = "HOW",
     .help = "tcp ports of the shards after the first: ephemeral or consecutive"},
    {.name = "advertise",
     .type = DT_OPT_CSV,
     .scope = BOTH,
     .offset = AT(advertise),
     .arg = "PORT,...",
     .help = "tcp ports that clients are told for the shards after the first (port mapping)"},
    {.name = "window",
     .type = DT_OPT_U64,
     .scope = BOTH | DT_OPT_RELOAD,
     .offset = AT(window),
     .def = "32",
     .min = 1,
     .max = 4096,
     .arg = "N",
     .help =
         "requests in flight on a connection (reload: for workers that come later, no more than "
         "at the start)"},
    {.name = "window-bytes",
     .type = DT_OPT_BYTES,
     .scope = BOTH | DT_OPT_RELOAD,
     .offset = AT(window_bytes),
     .def = "4MiB",
     .min = DT_SLICE_BYTES,
     .max = 1e15,
     .arg = "BYTES",
     .help =
         "payload bytes in flight on a connection, each direction (reload: for workers that come "
         "later)"},
    {.name = "max-session-bytes",
     .type = DT_OPT_BYTES,
     .scope = BOTH | DT_OPT_RELOAD,
     .offset = AT(max_session_bytes),
     .def = "1MiB",
     .min = 4096,
     .max = 1e15,
     .arg = "BYTES",
     .help = "bookkeeping memory that one session may use (reload: at once)"},
    {.name = "memory-quota",
     .type = DT_OPT_BYTES,
     .scope = BOTH | DT_OPT_RELOAD,
     .offset = AT(memory_quota),
     .def = "0",
     .arg = "BYTES",
     .help = "memory that one job may use; 0: half of the machine's memory (reload: for jobs that "
             "declare later)"},
    {.name = "together-bytes",
     .type = DT_OPT_BYTES,
     .scope = BOTH,
     .offset = AT(together_bytes),
     .def = "256KiB",
     .max = 1e15,
     .arg = "BYTES",
     .help = "variables stay on one shard, and in one message, until it has so much more than the "
             "shard with the least; 0: spread them"},
    {.name = "stop-timeout",
     .type = DT_OPT_DURATION,
     .scope = BOTH | DT_OPT_RELOAD,
     .offset = AT(stop_timeout_ms),
     .def = "5s",
     .min = 100,
     .max = 3600e3,
     .arg = "TIME",
     .help = "a clean stop takes no longer than this (reload: at once)"},
    {.name = "log-level",
     .type = DT_OPT_ENUM,
     .scope = BOTH | DT_OPT_RELOAD,
     .offset = AT(log_level),
     .def = "info",
     .choices = "err|warning|notice|info|debug",
     .arg = "LEVEL",
     .help = "err, warning, notice, info or debug (reload: at once)"},
    {.name = "private-dir",
     .type = DT_OPT_STRING,
     .scope = BOTH,
     .offset = AT(private_dir),
     .arg = "DIR",
     .help = "put the default admin socket here, as NAME.admin.sock"},
    {.name = "io-threads",
     .type = DT_OPT_U64,
     .scope = BOTH,
     .offset = AT(io_threads),
     .def = "0",
     .min = 0,
     .max = 64,
     .arg = "N",
     .help = "libzmq's I/O threads, which do most of the copying; 0: one a shard"},
    {.name = "once",
     .type = DT_OPT_FLAG,
     .scope = BOTH,
     .offset = AT(once),
     .help = "exit when all jobs are complete (0) or stay suspended (75)"},
    {.name = "insecure",
     .type = DT_OPT_FLAG,
     .scope = BOTH,
     .offset = AT(insecure),
     .help = "listen beyond loopback without keys: whoever reaches the port is let in"},
    {.name = "help",
     .letter = 'h',
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = AT(help),
     .help = "print this and exit"},
    {.name = "version",
     .letter = 'V',
     .type = DT_OPT_FLAG,
     .scope = DT_OPT_CLI,
     .offset = AT(version),
     .help = "print the version and exit"},
    {.name = NULL},
};

static void
free_list(char ***list)
{
    size_t i;

    for (i = 0; *list && (*list)[i]; i++)
        free((*list)[i]);
    free(*list);
    *list = NULL;
}

void
config_deinit(struct config *c)
{
    dt_options_deinit(config_table, c);
    memset(c, 0, sizeof(*c));
}

static bool
is_key(const char *text, size_t len, const char *key)
{
    return strlen(key) == len && memcmp(text, key, len) == 0;
}

/* -o listen= replaces what the file said. */
static bool
options_name_listen(char *const *options)
{
    size_t i;

    for (i = 0; options && options[i]; i++) {
        if (is_key(options[i], strcspn(options[i], "="), "listen"))
            return true;
    }
    return false;
}

static enum dt_status
apply_option(struct config *c, const char *text, struct dt_error *err)
{
    const char *eq = strchr(text, '=');
    char key[64];

    if (!eq || eq == text || (size_t)(eq - text) >= sizeof(key))
        return dt_fail(err, DT_E_USAGE, "-o %s: must be KEY=VALUE, as in -o shards=2", text);
    memcpy(key, text, (size_t)(eq - text));
    key[eq - text] = 0;
    if (dt_options_set(config_table, DT_OPT_FILE, c, key, eq + 1, "-o", err) == DT_OK)
        return DT_OK;
    if (err)
        err->code = DT_E_USAGE;
    return DT_E_USAGE;
}

static enum dt_status
apply_options(struct config *c, char *const *options, struct dt_error *err)
{
    enum dt_status s = DT_OK;
    size_t i;

    if (options_name_listen(options))
        free_list(&c->listen);
    for (i = 0; options && options[i] && s == DT_OK; i++)
        s = apply_option(c, options[i], err);
    return s;
}

static uint64_t
count_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint64_t)CPU_COUNT(&set);
    return 1;
}

static uint64_t
half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : UINT64_C(1) << 30;
}

/* Give every "automatic" its value. */
static enum dt_status
resolve(struct config *c, struct dt_error *err)
{
    if (!c->listen || !c->listen[0]) {
        free_list(&c->listen);
        c->listen = calloc(2, sizeof(*c->listen));
        if (!c->listen || !(c->listen[0] = strdup(DEFAULT_LISTEN)))
            return dt_fail(err, DT_E_NO_MEMORY, "out of memory");
    }
    if (c->shards == 0) {
        c->shards = count_cpus();
        if (c->shards > DEFAULT_MAX_SHARDS)
            c->shards = DEFAULT_MAX_SHARDS;
    }
    if (c->memory_quota == 0)
        c->memory_quota = half_of_memory();
    if (c->io_threads == 0)
        c->io_threads = c->shards;
    return DT_OK;
}

/* The second pass: `first` holds what the command line said. */
static enum dt_status
apply_sources(struct config *c, const struct config *first, int argc, char **argv,
              struct dt_error *err)
{
    enum dt_status s = dt_options_init(config_table, c, err);

    if (s == DT_OK && first->file)
        s = config_read_file(c, first->file, err);
    if (s == DT_OK)
        s = apply_options(c, first->options, err);
    if (s == DT_OK && dt_options_given(config_table, first, "listen"))
        free_list(&c->listen);
    if (s == DT_OK)
        s = dt_options_parse(config_table, c, argc, argv, NULL, err);
    if (s == DT_OK)
        s = resolve(c, err);
    return s;
}

enum dt_status
config_load(struct config *c, int argc, char **argv, struct dt_error *err)
{
    struct config first = {0};
    enum dt_status s;

    memset(c, 0, sizeof(*c));
    s = dt_options_init(config_table, &first, err);
    if (s == DT_OK)
        s = dt_options_parse(config_table, &first, argc, argv, NULL, err);
    if (s == DT_OK && (first.help || first.version)) {
        c->help = first.help;
        c->version = first.version;
    } else if (s == DT_OK) {
        s = apply_sources(c, &first, argc, argv, err);
        if (s == DT_OK)
            s = config_check(c, err);
    }
    config_deinit(&first);
    return s;
}

enum dt_log_level
config_log_level(const struct config *c)
{
    return (enum dt_log_level)(DT_LOG_ERR + c->log_level);
}

void
config_help(FILE *out)
{
    fprintf(out, "usage: psd [-f FILE] [-n] [--listen EP]... [option]...\n"
                 "A parameter server for data-parallel training. Runs in the foreground.\n\n");
    dt_options_help(config_table, out);
    fprintf(out, "\nKeys of the INI file (section [psd]) are the option names with underscores.\n"
                 "Signals: SIGTERM and SIGINT stop (a second one at once), SIGHUP reads the\n"
                 "configuration again; what then changes is marked (reload: ...).\n"
                 "Exit status: 0, 64 usage, 69 address in use or too few file descriptors, 70 "
                 "internal, 73 cannot create, 75 jobs "
                 "suspended (--once), 78 configuration.\n");
}
