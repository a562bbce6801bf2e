/*
 * options.c - the options of a benchmark: a table, of which each program has some. Main thread.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/parse.h"
#include "remains.h"

static bool
read_count(const char *text, uint64_t max, unsigned *out)
{
    uint64_t n;

    if (!dt_parse_u64(text, &n) || n == 0 || n > max)
        return false;
    *out = (unsigned)n;
    return true;
}

static bool
read_seconds(struct bench *b, const char *text)
{
    return dt_parse_double(text, &b->seconds) && b->seconds > 0 && b->seconds <= 3600;
}

static bool
read_max_mib(struct bench *b, const char *text)
{
    return read_count(text, 4096, &b->max_mib);
}

static bool
read_bytes(struct bench *b, const char *text)
{
    return dt_parse_u64(text, &b->bytes) && b->bytes > 0;
}

static bool
read_transport(struct bench *b, const char *text)
{
    b->transport = text;
    return !strcmp(text, "tcp") || !strcmp(text, "ipc");
}

static bool
read_only(struct bench *b, const char *text)
{
    b->only = text;
    return *text != 0;
}

static bool
read_workers(struct bench *b, const char *text)
{
    return read_count(text, 65536, &b->workers);
}

static bool
read_active(struct bench *b, const char *text)
{
    return read_count(text, 65536, &b->active);
}

static const struct option {
    enum bench_option option;
    const char *name, *value, *what;
    bool (*read)(struct bench *b, const char *text);
} options[] = {
    {BENCH_SECONDS, "--seconds", "S", "a number above 0, at most 3600", read_seconds},
    {BENCH_MAX_MIB, "--max-mib", "N", "a number from 1 to 4096", read_max_mib},
    {BENCH_BYTES, "--bytes", "N", "a number from 1", read_bytes},
    {BENCH_TRANSPORT, "--transport", "tcp|ipc", "tcp or ipc", read_transport},
    {BENCH_ONLY, "--only", "NAME", "a name", read_only},
    {BENCH_WORKERS, "--workers", "N", "a number from 1 to 65536", read_workers},
    {BENCH_ACTIVE, "--active", "N", "a number from 1 to 65536", read_active},
};
static const unsigned n_options = sizeof(options) / sizeof(options[0]);

static void
print_usage(FILE *out, unsigned mine)
{
    unsigned i;

    fprintf(out, "usage: %s", program_invocation_short_name);
    for (i = 0; i < n_options; i++) {
        if (mine & options[i].option)
            fprintf(out, " [%s %s]", options[i].name, options[i].value);
    }
    fputs(" [--json]\n", out);
}

static const struct option *
find(unsigned mine, const char *name)
{
    unsigned i;

    for (i = 0; i < n_options; i++) {
        if ((mine & options[i].option) && !strcmp(options[i].name, name))
            return &options[i];
    }
    return NULL;
}

static _Noreturn void
refuse_unknown(unsigned mine, const char *name)
{
    fprintf(stderr, "%s: there is no %s here; ", program_invocation_short_name, name);
    print_usage(stderr, mine);
    exit(64);
}

static void
read_all(struct bench *b, unsigned mine, int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        const struct option *o = find(mine, argv[i]);

        if (o && (i + 1 == argc || !o->read(b, argv[i + 1])))
            bench_refuse("%s takes %s", argv[i], o->what);
        if (o)
            i++;
        else if (!strcmp(argv[i], "--json"))
            b->json = true;
        else
            refuse_unknown(mine, argv[i]);
    }
}

void
bench_init(struct bench *b, unsigned mine, int argc, char **argv)
{
    *b = (struct bench){.seconds = 1, .max_mib = 256};
    read_all(b, mine, argc, argv);
    b->result = json_object();
    json_object_set_new(b->result, "rows", json_array());
    remains_watch();
}

bool
bench_wants(const struct bench *b, const char *name)
{
    return !b->only || !strcmp(b->only, name);
}
