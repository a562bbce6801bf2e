/*
 * log.c - what stands on a line, in a terminal and under systemd; threads; the rate limit.
 */
#include "proto/base/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"

TestSuite(log, .timeout = 120);

#define CAPTURE (1 << 20)

static int saved_stderr;
static FILE *sink;

static void
capture_start(void)
{
    sink = tmpfile();
    saved_stderr = dup(STDERR_FILENO);
    dup2(fileno(sink), STDERR_FILENO);
}

/* What was written since capture_start(); free it. */
static char *
capture_end(void)
{
    char *text = calloc(1, CAPTURE);
    ssize_t n;

    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    n = pread(fileno(sink), text, CAPTURE - 1, 0);
    cr_assert(n >= 0 && n < CAPTURE - 1);
    fclose(sink);
    return text;
}

static void
assert_matches(const char *text, const char *pattern)
{
    regex_t re;

    cr_assert_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    cr_assert_eq(regexec(&re, text, 0, NULL, 0), 0, "'%s' does not match %s", text, pattern);
    regfree(&re);
}

static void
open_plain(enum dt_log_level level)
{
    unsetenv("JOURNAL_STREAM");
    dt_log_open("psd", level);
}

Test(log, line_has_time_program_and_level)
{
    char *text;

    open_plain(DT_LOG_INFO);
    capture_start();
    dt_log(DT_LOG_WARNING, "job %s has %d workers", "fashion", 2);
    text = capture_end();
    assert_matches(text, "^[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} psd warning: "
                         "job fashion has 2 workers\n$");
    free(text);
}

Test(log, journal_prefix)
{
    char *text;

    setenv("JOURNAL_STREAM", "8:1234", 1);
    dt_log_open("psd", DT_LOG_DEBUG);
    capture_start();
    dt_log(DT_LOG_ERR, "a");
    dt_log(DT_LOG_DEBUG, "b");
    text = capture_end();
    cr_assert_str_eq(text, "<3>a\n<7>b\n");
    free(text);
}

Test(log, levels_filter)
{
    char *text;

    open_plain(DT_LOG_WARNING);
    cr_assert(dt_log_enabled(DT_LOG_ERR));
    cr_assert(dt_log_enabled(DT_LOG_WARNING));
    cr_assert_not(dt_log_enabled(DT_LOG_NOTICE));
    capture_start();
    dt_log(DT_LOG_INFO, "hidden");
    dt_log_set_level(DT_LOG_INFO);
    dt_log(DT_LOG_INFO, "shown");
    text = capture_end();
    cr_assert_null(strstr(text, "hidden"));
    cr_assert_not_null(strstr(text, "shown"));
    free(text);
}

Test(log, level_names)
{
    enum dt_log_level level = DT_LOG_ERR;

    cr_assert(dt_log_parse_level("debug", &level) && level == DT_LOG_DEBUG);
    cr_assert(dt_log_parse_level("err", &level) && level == DT_LOG_ERR);
    cr_assert(dt_log_parse_level("notice", &level) && level == DT_LOG_NOTICE);
    cr_assert_not(dt_log_parse_level("crit", &level));
    cr_assert_not(dt_log_parse_level("", &level));
    cr_assert_not(dt_log_parse_level("INFO", &level));
    cr_assert_eq(level, DT_LOG_NOTICE);
}

Test(log, foreign_text_stays_on_one_line)
{
    char *text;

    open_plain(DT_LOG_INFO);
    capture_start();
    dt_log(DT_LOG_INFO, "name '%s'", "a\nb\033[31m\x7f");
    text = capture_end();
    cr_assert_not_null(strstr(text, "name 'a?b?[31m?'\n"));
    free(text);
}

Test(log, long_lines_are_cut_and_long_names_harmless)
{
    static char big[5000], name[300];
    char *text;

    memset(big, 'x', sizeof(big) - 1);
    memset(name, 'n', sizeof(name) - 1);
    unsetenv("JOURNAL_STREAM");
    dt_log_open(name, DT_LOG_INFO);
    capture_start();
    dt_log(DT_LOG_INFO, "%s", big);
    dt_log(DT_LOG_INFO, "next");
    text = capture_end();
    cr_assert_lt(strcspn(text, "\n"), 1200);
    cr_assert_geq(strcspn(text, "\n"), 1000);
    cr_assert_str_eq(text + strlen(text) - 5, "next\n");
    free(text);
}

Test(log, errno_is_kept)
{
    open_plain(DT_LOG_INFO);
    capture_start();
    close(STDERR_FILENO);
    errno = ENOENT;
    dt_log(DT_LOG_INFO, "to a closed descriptor");
    cr_expect_eq(errno, ENOENT);
    free(capture_end());
}

enum { N_THREADS = 4, PER_THREAD = 500 };

static void *
log_many(void *arg)
{
    int id = *(int *)arg, i;

    for (i = 0; i < PER_THREAD; i++)
        dt_log(DT_LOG_INFO, "<thread %d line %03d %060d>", id, i, 0);
    return NULL;
}

Test(log, lines_of_threads_never_mix)
{
    int ids[N_THREADS], next[N_THREADS] = {0}, id, line, n = 0;
    pthread_t threads[N_THREADS];
    char *text, *p, *save;

    open_plain(DT_LOG_INFO);
    capture_start();
    for (id = 0; id < N_THREADS; id++) {
        ids[id] = id;
        cr_assert_eq(pthread_create(&threads[id], NULL, log_many, &ids[id]), 0);
    }
    for (id = 0; id < N_THREADS; id++)
        pthread_join(threads[id], NULL);
    text = capture_end();
    for (p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save), n++) {
        const char *body = strchr(p, '<');

        cr_assert(body && sscanf(body, "<thread %d line %d ", &id, &line) == 2, "'%s'", p);
        cr_assert_eq(p[strlen(p) - 1], '>', "'%s'", p);
        cr_assert_eq(line, next[id]++);
    }
    cr_assert_eq(n, N_THREADS * PER_THREAD);
    free(text);
}

static int
count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

Test(log, limit_tells_what_was_suppressed)
{
    struct dt_log_limit limit = DT_LOG_LIMIT(3, 200);
    char *text;
    int i;

    open_plain(DT_LOG_INFO);
    capture_start();
    for (i = 0; i < 20; i++)
        dt_log_limited(&limit, DT_LOG_WARNING, "bad message %d", i);
    dt_sleep_ms(250);
    dt_log_limited(&limit, DT_LOG_WARNING, "late");
    dt_log_limited(&limit, DT_LOG_WARNING, "later");
    text = capture_end();
    cr_assert_eq(count(text, "bad message"), 3, "%s", text);
    cr_assert_not_null(strstr(text, "late (17 like this suppressed)\n"), "%s", text);
    cr_assert_not_null(strstr(text, "later\n"), "%s", text);
    free(text);
}

Test(log, limit_does_not_count_what_the_level_hides)
{
    struct dt_log_limit limit = DT_LOG_LIMIT(1, 60000);
    char *text;

    open_plain(DT_LOG_WARNING);
    capture_start();
    dt_log_limited(&limit, DT_LOG_DEBUG, "hidden");
    dt_log_limited(&limit, DT_LOG_WARNING, "shown");
    text = capture_end();
    cr_assert_null(strstr(text, "hidden"));
    cr_assert_not_null(strstr(text, "shown\n"));
    free(text);
}

static struct dt_log_limit shared_limit = DT_LOG_LIMIT(5, 60000);

static void *
log_limited_many(void *arg)
{
    int i;

    (void)arg;
    for (i = 0; i < PER_THREAD; i++)
        dt_log_limited(&shared_limit, DT_LOG_INFO, "flood");
    return NULL;
}

Test(log, limit_shared_by_threads)
{
    pthread_t threads[N_THREADS];
    char *text;
    int i;

    open_plain(DT_LOG_INFO);
    capture_start();
    dt_log_limited(&shared_limit, DT_LOG_INFO, "flood"); /* opens the window */
    for (i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, log_limited_many, NULL), 0);
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    text = capture_end();
    cr_assert_eq(count(text, "flood"), 5);
    cr_assert_eq(shared_limit.suppressed, N_THREADS * PER_THREAD + 1 - 5);
    free(text);
}
