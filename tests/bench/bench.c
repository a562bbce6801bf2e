/*
 * bench.c - output and a psd process. Main thread.
 */
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

_Noreturn void
bench_end(int code, const char *fmt, ...)
{
    va_list ap;

    remains_only_one();
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(code);
}

static void
print_value(const char *key, const json_t *v)
{
    if (json_is_string(v))
        printf(" %14s", json_string_value(v));
    else if (json_is_integer(v))
        printf(" %14lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        printf(" %14.4g", json_real_value(v));
    else
        printf(" %14s", key);
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
    if (json_array_size(json_object_get(b->result, "rows")) == 0)
        bench_refuse("nothing here is what the options ask for");
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
    p->pid = bench_fork();
    if (p->pid < 0)
        bench_fail("no process for psd");
    if (p->pid == 0) {
        execl(path, "psd", "--listen", p->endpoint, "--admin", "none", "-o", shards, "-o",
              "log_level=warning", NULL);
        _exit(127);
    }
}

void
bench_psd_stop(struct bench_psd *p)
{
    int status;

    kill(p->pid, SIGTERM);
    status = bench_wait(p->pid);
    if (status != 0)
        bench_fail("psd ended with status %d", status);
    bench_directory_remove(p->directory);
}
