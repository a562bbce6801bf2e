/* metrics.c - JSON lines: what is in them, how often they come, what a full disk does. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/train/metrics.h"

TestSuite(metrics, .timeout = 80);

Test(metrics, a_line_at_each_epoch_end_and_few_between)
{
    char path[] = "/tmp/metrics-XXXXXX";
    int fd = mkstemp(path);
    struct metrics *m = NULL;
    struct dt_error err = {DT_OK, ""};
    const double phases[N_PHASES] = {[PHASE_COMPUTE] = 1.5, [PHASE_WAIT] = 0.5};
    struct loop_point p = {
        .loss = 0.5, .accuracy = NAN, .samples = 20, .seconds = 2, .phases = phases, .stale = 1};

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(metrics_open(path, 60000, &m, &err), DT_OK, "%s", err.text);
    for (p.step = 1; p.step <= 100; p.step++) {
        p.epoch_end = p.step % 50 == 0;
        p.accuracy = p.epoch_end ? 0.75 : (double)NAN;
        metrics_point(m, &p, false);
    }
    cr_expect_eq(metrics_close(m, &err), DT_OK, "%s", err.text);
    FILE *in = fopen(path, "r");
    char line[512];
    unsigned n = 0;
    json_t *last = NULL;
    while (fgets(line, sizeof(line), in)) {
        json_decref(last);
        last = json_loads(line, 0, NULL);
        cr_assert(json_is_object(last), "%s", line);
        if (n++ == 0)
            cr_expect(json_is_null(json_object_get(last, "accuracy")));
    }
    fclose(in);
    unlink(path);
    cr_expect_eq(n, 3, "the first step and two epoch ends, not %u", n);
    cr_expect_eq(json_integer_value(json_object_get(last, "step")), 100);
    cr_expect_float_eq(json_real_value(json_object_get(last, "accuracy")), 0.75, 1e-9);
    cr_expect_float_eq(json_real_value(json_object_get(last, "samples_per_second")), 10, 1e-9);
    cr_expect_eq(json_integer_value(json_object_get(last, "stale")), 1);
    const json_t *time = json_object_get(last, "time");
    cr_expect_float_eq(json_real_value(json_object_get(time, "wait")), 0.25, 1e-9);
    json_decref(last);
}

Test(metrics, staleness_is_null_or_counts_from_the_start)
{
    int fds[2];
    struct metrics *m = NULL;
    struct staleness counts = {0};
    struct dt_error err = {DT_OK, ""};
    struct loop_point p = {.loss = 1, .accuracy = NAN};
    char text[2048] = "";

    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(metrics_open_fd(fds[1], 0, &m, &err), DT_OK, "%s", err.text);
    metrics_point(m, &p, true);
    staleness_add(&counts, 3);
    staleness_add(&counts, 5);
    p.staleness = &counts;
    metrics_point(m, &p, true);
    cr_expect_eq(metrics_close(m, &err), DT_OK);
    cr_assert_gt(read(fds[0], text, sizeof(text) - 1), 0);
    close(fds[0]);
    cr_expect_not_null(strstr(text, "\"staleness\":null}\n"), "%s", text);
    cr_expect_not_null(strstr(text, "\"staleness\":{\"pushes\":2,\"mean\":4.0,\"p50\":3,\"p99\":5,"
                                    "\"max\":5,\"histogram\":[0,0,0,1,0,1]}}\n"),
                       "%s", text);
}

Test(metrics, a_disk_that_is_full_is_told_at_the_end)
{
    struct metrics *m = NULL;
    struct dt_error err = {DT_OK, ""};
    struct loop_point p = {.loss = 1, .accuracy = NAN};

    cr_assert_eq(metrics_open("/dev/full", 0, &m, &err), DT_OK, "%s", err.text);
    metrics_point(m, &p, true);
    cr_expect_eq(metrics_close(m, &err), DT_E_IO);
}

static void
write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

static long
size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

Test(metrics, without_a_line_nothing_has_changed)
{
    char path[] = "/tmp/metrics-XXXXXX";
    int fd = mkstemp(path);
    struct metrics *m = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_assert_geq(fd, 0);
    close(fd);
    write_text(path, "of another training\n");
    cr_assert_eq(metrics_open(path, 0, &m, &err), DT_OK, "%s", err.text);
    cr_expect_eq(metrics_close(m, &err), DT_OK);
    cr_expect_eq(size_of(path), 20, "an older file stays");
    unlink(path);
    cr_assert_eq(metrics_open(path, 0, &m, &err), DT_OK, "%s", err.text);
    cr_expect_eq(size_of(path), 0);
    cr_expect_eq(metrics_close(m, &err), DT_OK);
    cr_expect_eq(size_of(path), -1, "no empty file is left");
}

Test(metrics, the_first_line_replaces_an_older_file)
{
    char path[] = "/tmp/metrics-XXXXXX";
    int fd = mkstemp(path);
    struct metrics *m = NULL;
    struct dt_error err = {DT_OK, ""};
    struct loop_point p = {.loss = 1, .accuracy = NAN};
    char text[8192] = "";

    cr_assert_geq(fd, 0);
    close(fd);
    memset(text, 'x', 4096);
    write_text(path, text);
    cr_assert_eq(metrics_open(path, 0, &m, &err), DT_OK, "%s", err.text);
    metrics_point(m, &p, true);
    cr_expect_eq(metrics_close(m, &err), DT_OK);
    FILE *in = fopen(path, "r");
    cr_assert_not_null(in);
    size_t n = fread(text, 1, sizeof(text) - 1, in);
    text[n] = '\0';
    fclose(in);
    unlink(path);
    cr_expect_eq(text[0], '{');
    cr_expect_null(strchr(text, 'x'), "%s", text);
    cr_expect_eq(strchr(text, '\n'), text + n - 1, "one line");
}

Test(metrics, a_folder_that_is_not_there_is_told_at_once)
{
    struct metrics *m = NULL;
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(metrics_open("/nonexistent/m.jsonl", 0, &m, &err), DT_E_CANT_CREATE);
    cr_expect_null(m);
}

/* Nobody waits for a reader that may never come. */
Test(metrics, a_pipe_without_a_reader_is_told_at_once)
{
    char dir[] = "/tmp/unit-metrics-XXXXXX", path[64];
    struct dt_error err = {DT_OK, ""};
    struct metrics *m;

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/pipe", dir);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(metrics_open(path, 0, &m, &err), DT_E_CANT_CREATE);
    cr_expect(strstr(err.text, path), "%s", err.text);
    unlink(path);
    rmdir(dir);
}
