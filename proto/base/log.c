/*
 * log.c - one line a call, one write(2) a line. Any thread; state is atomics.
 */
#include "proto/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define PREFIX 80
#define TEXT 1024
#define SUFFIX 64

static const char *const names[8] = {"emerg",   "alert",  "crit", "err",
                                     "warning", "notice", "info", "debug"};

static const char *program = "psd";
static atomic_int threshold = DT_LOG_INFO;
static bool journal;

void
dt_log_open(const char *name, enum dt_log_level level)
{
    program = name;
    journal = getenv("JOURNAL_STREAM") != NULL;
    dt_log_set_level(level);
}

void
dt_log_set_level(enum dt_log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool
dt_log_enabled(enum dt_log_level level)
{
    return (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

bool
dt_log_parse_level(const char *text, enum dt_log_level *level)
{
    int i;

    for (i = DT_LOG_ERR; i <= DT_LOG_DEBUG; i++) {
        if (!strcmp(text, names[i])) {
            *level = (enum dt_log_level)i;
            return true;
        }
    }
    return false;
}

/* The length of the prefix, at most PREFIX - 1. */
static size_t
write_prefix(char *line, enum dt_log_level level)
{
    struct timespec now;
    struct tm tm;
    int n;

    if (journal) {
        n = snprintf(line, PREFIX, "<%d>", (int)level);
    } else {
        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &tm);
        n = snprintf(line, PREFIX, "%02d:%02d:%02d.%03ld %.20s %s: ", tm.tm_hour, tm.tm_min,
                     tm.tm_sec, now.tv_nsec / 1000000, program, names[level & 7]);
    }
    return n < 0 ? 0 : n < PREFIX ? (size_t)n : PREFIX - 1;
}

/* A line stays one line: control characters of foreign text become '?'. */
static void
make_printable(char *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
            p[i] = '?';
    }
}

static void
put(enum dt_log_level level, const char *text, unsigned suppressed)
{
    char line[PREFIX + TEXT + SUFFIX];
    size_t n = write_prefix(line, level), len = strlen(text);
    int saved = errno;

    memcpy(line + n, text, len);
    make_printable(line + n, len);
    n += len;
    if (suppressed)
        n += (size_t)snprintf(line + n, SUFFIX, " (%u like this suppressed)", suppressed);
    line[n++] = '\n';
    while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
        ;
    errno = saved;
}

void
dt_log(enum dt_log_level level, const char *fmt, ...)
{
    char text[TEXT];
    va_list ap;

    if (!dt_log_enabled(level))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put(level, text, 0);
}

/* May this line pass? Takes what was suppressed since the last one. */
static bool
limit_allows(struct dt_log_limit *l, unsigned *suppressed)
{
    int64_t now = dt_now_ms();
    int64_t start = __atomic_load_n(&l->window_start_ms, __ATOMIC_RELAXED);

    if ((start == 0 || now - start >= l->interval_ms) &&
        __atomic_compare_exchange_n(&l->window_start_ms, &start, now, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        __atomic_store_n(&l->used, 0, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&l->used, 1, __ATOMIC_RELAXED) > l->burst) {
        __atomic_add_fetch(&l->suppressed, 1, __ATOMIC_RELAXED);
        return false;
    }
    *suppressed = __atomic_exchange_n(&l->suppressed, 0, __ATOMIC_RELAXED);
    return true;
}

void
dt_log_limited(struct dt_log_limit *limit, enum dt_log_level level, const char *fmt, ...)
{
    char text[TEXT];
    unsigned suppressed;
    va_list ap;

    if (!dt_log_enabled(level) || !limit_allows(limit, &suppressed))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put(level, text, suppressed);
}
