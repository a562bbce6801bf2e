/*
 * log.h - the log of the programs (psd, dtworker, psctl). Libraries never call it.
 *
 * One line a call, to stderr. Levels are syslog's. With JOURNAL_STREAM set (systemd) lines start
 * with "<N>" so that the journal keeps the priority; else with a time stamp and the level's name.
 * Thread rule: any thread; a line is written by one write(2), so lines never mix.
 */
#ifndef DT_BASE_LOG_H
#define DT_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum dt_log_level {
    DT_LOG_ERR = 3,
    DT_LOG_WARNING = 4,
    DT_LOG_NOTICE = 5,
    DT_LOG_INFO = 6,
    DT_LOG_DEBUG = 7,
};

/* `program` is borrowed for the life of the process. Call once at start. Default level: INFO. */
void dt_log_open(const char *program, enum dt_log_level level);
void dt_log_set_level(enum dt_log_level level); /* any thread */
bool dt_log_enabled(enum dt_log_level level);
/* "err", "warning", "notice", "info", "debug" -> level; false if unknown. */
bool dt_log_parse_level(const char *text, enum dt_log_level *level);

void dt_log(enum dt_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A rate limit: at most `burst` lines in `interval_ms`; what was suppressed is told with the next
 * line that passes ("... (17 like this suppressed)"). One static object a call site. */
struct dt_log_limit {
    int burst;
    int interval_ms;
    int64_t window_start_ms; /* private */
    int used;                /* private */
    unsigned suppressed;     /* private */
};
#define DT_LOG_LIMIT(burst_, interval_ms_)                                                         \
    {                                                                                              \
        (burst_), (interval_ms_), 0, 0, 0                                                          \
    }

/* Thread rule: one limit object may be used by several threads (atomics inside). */
void dt_log_limited(struct dt_log_limit *limit, enum dt_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
