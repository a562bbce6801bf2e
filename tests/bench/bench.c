/*
 * bench.c - options, output, and a psd process. Main thread.
 */
#include "bench.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "proto/base/parse.h"

static struct bench_psd *running; /* list; stopped when a benchmark fails */

_Noreturn void
bench_fail(const char *fmt, ...)
{
    va_list ap;

    fputs("bench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    while (running)
        bench_psd_stop(running);
    exit(1);
}

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
read_option(struct bench *b, const char *name, const char *value)
{
    if (!strcmp(name, "--seconds"))
        return dt_parse_double(value, &b->seconds) && b->seconds > 0;
    if (!strcmp(name, "--max-mib"))
        return read_count(value, 4096, &b->max_mib);
    if (!strcmp(name, "--bytes"))
        return dt_parse_u64(value, &b->bytes);
    if (!strcmp(name, "--only"))
        return (b->only = value) != NULL;
    if (!strcmp(name, "--transport"))
        return (b->transport = value) != NULL;
    if (!strcmp(name, "--workers"))
        return read_count(value, 65536, &b->workers);
    if (!strcmp(name, "--active"))
        return read_count(value, 65536, &b->active);
    return false;
}

void
bench_init(struct bench *b, int argc, char **argv)
{
    int i;

    *b = (struct bench){.seconds = 1, .max_mib = 256, .result = json_object()};
    json_object_set_new(b->result, "rows", json_array());
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            b->json = true;
        } else if (i + 1 < argc && read_option(b, argv[i], argv[i + 1])) {
            i++;
        } else {
            fprintf(stderr,
                    "usage: %s [--seconds S] [--max-mib N] [--bytes N] [--transport tcp|ipc] "
                    "[--only NAME] [--workers N] [--active N] [--json]\n",
                    argv[0]);
            exit(64);
        }
    }
}

bool
bench_wants(const struct bench *b, const char *name)
{
    return !b->only || !strcmp(b->only, name);
}

static void
print_value(const char *key, const json_t *v)
{
    if (json_is_string(v))
        printf("%12s", json_string_value(v));
    else if (json_is_integer(v))
        printf("%12lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        printf("%12.4g", json_real_value(v));
    else
        printf("%12s", key);
}

static void
print_row(const json_t *row, bool head)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)row, key, v) print_value(key, head ? NULL : v);
    putchar('\n');
    fflush(stdout);
}

void
bench_row(struct bench *b, json_t *row)
{
    json_t *rows = json_object_get(b->result, "rows");

    if (!row)
        bench_fail("short of memory");
    if (!b->json && json_array_size(rows) == 0)
        print_row(row, true);
    if (!b->json)
        print_row(row, false);
    json_array_append_new(rows, row);
}

void
bench_note(struct bench *b, const char *name, double value)
{
    json_object_set_new(b->result, name, json_real(value));
    if (!b->json)
        printf("%s: %.4g\n", name, value);
}

void
bench_finish(struct bench *b)
{
    if (b->only && json_array_size(json_object_get(b->result, "rows")) == 0)
        bench_fail("--only %s: nothing here has this name", b->only);
    if (b->json) {
        json_dumpf(b->result, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(b->result);
}

void
bench_find(char *path, size_t bytes, const char *name)
{
    ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
    char *slash;

    path[n > 0 ? n : 0] = 0;
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash + 1 - path) + strlen(name) + 1 > bytes)
        bench_fail("where is %s?", name);
    strcpy(slash + 1, name);
}

/* Nobody else's at the moment. */
static unsigned
free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || getsockname(fd, (struct sockaddr *)&a, &len))
        bench_fail("no port on loopback");
    close(fd);
    return ntohs(a.sin_port);
}

double
bench_psd_peak_mib(const struct bench_psd *p)
{
    char path[64], line[256];
    double kib = -1024;
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)p->pid);
    in = fopen(path, "r");
    while (in && fgets(line, sizeof(line), in)) {
        if (!strncmp(line, "VmHWM:", 6))
            kib = strtod(line + 6, NULL);
    }
    if (in)
        fclose(in);
    return kib / 1024;
}

double
bench_cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double
bench_psd_cpu_seconds(const struct bench_psd *p)
{
    struct timespec t = {0};
    clockid_t clock;

    if (clock_getcpuclockid(p->pid, &clock) || clock_gettime(clock, &t))
        bench_fail("no CPU time of psd");
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void
bench_directory(char path[BENCH_DIRECTORY])
{
    const char *parent = getenv("TMPDIR");

    if (!parent || strlen(parent) > 40) /* a socket's path is short */
        parent = "/tmp";
    snprintf(path, BENCH_DIRECTORY, "%s/psd-bench-XXXXXX", parent);
    if (!mkdtemp(path))
        bench_fail("no directory under %s", parent);
}

void
bench_psd_start(struct bench_psd *p, bool tcp, unsigned n_shards)
{
    char path[4096], shards[32];

    bench_find(path, sizeof(path), "psd");
    bench_directory(p->directory);
    if (tcp)
        snprintf(p->endpoint, sizeof(p->endpoint), "tcp://127.0.0.1:%u", free_port());
    else
        snprintf(p->endpoint, sizeof(p->endpoint), "ipc://%s/psd", p->directory);
    snprintf(shards, sizeof(shards), n_shards ? "shards=%u" : "log_level=warning", n_shards);
    p->pid = fork();
    if (p->pid < 0)
        bench_fail("no process for psd");
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        execl(path, "psd", "--listen", p->endpoint, "--admin", "none", "-o", shards, "-o",
              "log_level=warning", NULL);
        _exit(127);
    }
    LL_PREPEND(running, p);
}

void
bench_psd_stop(struct bench_psd *p)
{
    int status = 0;

    LL_DELETE(running, p);
    kill(p->pid, SIGTERM);
    if (waitpid(p->pid, &status, 0) != p->pid || status != 0)
        bench_fail("psd ended with status %d", status);
    if (rmdir(p->directory))
        bench_fail("psd left something in %s", p->directory);
}
