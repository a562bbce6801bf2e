/*
 * config.c - the settings' sources, their order, and what their errors say.
 */
#include "psd/daemon/config.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(config, .timeout = 80);

#define MAX_ARGS 16

static enum dt_status
load(struct config *c, struct dt_error *err, const char *const *args)
{
    char *argv[MAX_ARGS + 2] = {(char *)"psd"};
    int argc = 1;

    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    memset(err, 0, sizeof(*err));
    return config_load(c, argc, argv, err);
}
#define LOAD(c, err, ...) load((c), (err), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* A file with this text; its path in `path`. */
static void
write_file(char *path, const char *text)
{
    int fd;

    strcpy(path, "/tmp/psd-config-XXXXXX");
    fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Loads -f with this text and more arguments; the error's path is replaced by "FILE". */
static enum dt_status
load_text(struct config *c, struct dt_error *err, const char *text, const char *more)
{
    char path[64], *at;
    enum dt_status s;

    write_file(path, text);
    s = more ? LOAD(c, err, "-f", path, more) : LOAD(c, err, "-f", path);
    unlink(path);
    at = strstr(err->text, path);
    if (at) {
        memcpy(at, "FILE", 4);
        memmove(at + 4, at + strlen(path), strlen(at + strlen(path)) + 1);
    }
    return s;
}

Test(config, defaults)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(LOAD(&c, &err), DT_OK, "%s", err.text);
    cr_assert_str_eq(c.listen[0], "tcp://127.0.0.1:2222");
    cr_assert_null(c.listen[1]);
    cr_assert(c.shards >= 1 && c.shards <= 4);
    cr_assert_eq(c.shard_ports, PORTS_EPHEMERAL);
    cr_assert_eq(c.window, 32);
    cr_assert_eq(c.window_bytes, 4u << 20);
    cr_assert_eq(c.max_session_bytes, 1u << 20);
    cr_assert_gt(c.memory_quota, 16u << 20);
    cr_assert_eq(c.stop_timeout_ms, 5000);
    cr_assert_eq(config_log_level(&c), DT_LOG_INFO);
    cr_assert_geq(c.io_threads, 1);
    cr_assert_not(c.once);
    cr_assert_not(c.insecure);
    config_deinit(&c);
}

Test(config, reads_the_file)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(load_text(&c, &err,
                           "; a comment\n[psd]\nlisten = tcp://127.0.0.1:7000\n"
                           "listen = ipc:///tmp/x.sock\nshards=3\nshard_ports = consecutive\n"
                           "window_bytes = 2MiB\nstop_timeout = 250ms\nlog_level = debug\n"
                           "once = yes\n",
                           NULL),
                 DT_OK, "%s", err.text);
    cr_assert_str_eq(c.listen[0], "tcp://127.0.0.1:7000");
    cr_assert_str_eq(c.listen[1], "ipc:///tmp/x.sock");
    cr_assert_null(c.listen[2]);
    cr_assert_eq(c.shards, 3);
    cr_assert_eq(c.shard_ports, PORTS_CONSECUTIVE);
    cr_assert_eq(c.window_bytes, 2u << 20);
    cr_assert_eq(c.stop_timeout_ms, 250);
    cr_assert_eq(config_log_level(&c), DT_LOG_DEBUG);
    cr_assert(c.once);
    config_deinit(&c);
}

Test(config, command_line_wins_over_o_wins_over_file)
{
    static const char text[] = "[psd]\nlisten = tcp://127.0.0.1:7000\nshards = 3\nwindow = 5\n";
    struct dt_error err;
    struct config c;
    char path[64];

    write_file(path, text);
    cr_assert_eq(LOAD(&c, &err, "--listen", "tcp://127.0.0.1:8000", "-f", path, "-o", "window=6",
                      "-o", "shards=2", "--shards=1"),
                 DT_OK, "%s", err.text);
    cr_assert_str_eq(c.listen[0], "tcp://127.0.0.1:8000");
    cr_assert_null(c.listen[1], "the command line's list replaces the file's");
    cr_assert_eq(c.window, 6);
    cr_assert_eq(c.shards, 1);
    config_deinit(&c);
    cr_assert_eq(LOAD(&c, &err, "-f", path, "-o", "listen=tcp://127.0.0.1:9000"), DT_OK);
    cr_assert_str_eq(c.listen[0], "tcp://127.0.0.1:9000");
    cr_assert_null(c.listen[1]);
    config_deinit(&c);
    unlink(path);
}

Test(config, unknown_key_names_file_line_and_the_near_one)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(load_text(&c, &err, "[psd]\n\nwindw = 3\n", NULL), DT_E_CONFIG);
    cr_assert(strstr(err.text, "FILE:3"), "%s", err.text);
    cr_assert(strstr(err.text, "window"), "%s", err.text);
    config_deinit(&c);
}

Test(config, command_line_keys_are_not_keys_of_the_file)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(load_text(&c, &err, "check = yes\n", NULL), DT_E_CONFIG);
    config_deinit(&c);
}

Test(config, errors_of_the_file)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[psd]\nwindow = 5x\n", "FILE:2"},
        {"[psd]\nwindow = 0\n", "FILE:2"},
        {"[psd]\nlog_level = loud\n", "FILE:2"},
        {"[psdd]\nwindow = 5\n", "FILE:1: unknown section [psdd]"},
        {"[psd\nwindow = 5\n", "FILE:1: the section's ']'"},
        {"[psd]\nwindow = 5\nwindow = 6\n", "FILE:3: window is set twice"},
        {"[psd]\nnothing\nwindow = 5\n", "FILE:2: not a line"},
        {"[psd]\nlisten = http://x\n", "listen"},
        {"[psd]\nadmin = tcp://127.0.0.1:1\n", "admin"},
        {"[psd]\nshards = 3\nadvertise = 1,2,3\n", "advertise: has 3 ports"},
        {"[psd]\nshards = 2\nadvertise = 70000\n", "70000"},
    };
    struct dt_error err;
    struct config c;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(load_text(&c, &err, rows[i].text, NULL), DT_E_CONFIG, "%s", rows[i].text);
        cr_expect(strstr(err.text, rows[i].says), "%s gave: %s", rows[i].text, err.text);
        config_deinit(&c);
    }
}

Test(config, a_long_line_is_fatal_and_never_half_read)
{
    char text[600] = "[psd]\nprivate_dir = /";
    struct dt_error err;
    struct config c;

    memset(text + strlen(text), 'a', 300);
    strcat(text, "\nwindow = 5\n");
    cr_assert_eq(load_text(&c, &err, text, NULL), DT_E_CONFIG);
    cr_assert(strstr(err.text, "FILE:2: the line has more than"), "%s", err.text);
    config_deinit(&c);
}

Test(config, a_missing_file_is_named)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(LOAD(&c, &err, "-f", "/nonexistent/psd.conf"), DT_E_CONFIG);
    cr_assert(strstr(err.text, "/nonexistent/psd.conf"), "%s", err.text);
    config_deinit(&c);
}

Test(config, errors_of_the_command_line_are_usage)
{
    struct dt_error err;
    struct config c;

    cr_expect_eq(LOAD(&c, &err, "--shrads", "2"), DT_E_USAGE);
    cr_expect(strstr(err.text, "--shards"), "%s", err.text);
    config_deinit(&c);
    cr_expect_eq(LOAD(&c, &err, "-o", "window"), DT_E_USAGE);
    cr_expect(strstr(err.text, "KEY=VALUE"), "%s", err.text);
    config_deinit(&c);
    cr_expect_eq(LOAD(&c, &err, "-o", "window=x"), DT_E_USAGE);
    config_deinit(&c);
    cr_expect_eq(LOAD(&c, &err, "--window", "0"), DT_E_USAGE);
    config_deinit(&c);
    cr_expect_eq(LOAD(&c, &err, "stray"), DT_E_USAGE);
    config_deinit(&c);
}

Test(config, beyond_loopback_needs_insecure)
{
    static const char *const open[] = {"tcp://0.0.0.0:2222", "tcp://*:2222", "tcp://192.0.2.1:2222",
                                       "tcp://[::]:2222"};
    static const char *const closed[] = {"tcp://127.0.0.1:2222", "tcp://[::1]:2222",
                                         "ipc:///tmp/a.sock"};
    struct dt_error err;
    struct config c;
    size_t i;

    for (i = 0; i < 4; i++) {
        cr_expect_eq(LOAD(&c, &err, "--listen", open[i]), DT_E_CONFIG, "%s", open[i]);
        cr_expect(strstr(err.text, "--insecure"), "%s", err.text);
        cr_expect(strstr(err.text, "loopback"), "%s", err.text);
        config_deinit(&c);
        cr_expect_eq(LOAD(&c, &err, "--listen", open[i], "--insecure"), DT_OK, "%s", err.text);
        config_deinit(&c);
    }
    for (i = 0; i < 3; i++) {
        cr_expect_eq(LOAD(&c, &err, "--listen", closed[i]), DT_OK, "%s", err.text);
        config_deinit(&c);
    }
}

Test(config, help_wins_over_a_bad_file)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(LOAD(&c, &err, "--help", "-f", "/nonexistent/psd.conf"), DT_OK);
    cr_assert(c.help);
    config_deinit(&c);
}

Test(config, the_dump_is_a_file_that_gives_the_same_settings)
{
    struct dt_error err;
    struct config a, b;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    cr_assert_eq(LOAD(&a, &err, "--listen", "tcp://127.0.0.1:7000", "--listen", "ipc:///tmp/a.sock",
                      "--shards", "3", "--advertise", "7001,7002", "--log-level", "notice",
                      "--stop-timeout", "1500ms", "--once"),
                 DT_OK, "%s", err.text);
    fprintf(out, "[psd]\n");
    dt_options_dump(config_table, &a, out);
    fclose(out);
    cr_assert_eq(load_text(&b, &err, text, NULL), DT_OK, "%s\n%s", err.text, text);
    cr_assert_str_eq(b.listen[0], "tcp://127.0.0.1:7000");
    cr_assert_str_eq(b.listen[1], "ipc:///tmp/a.sock");
    cr_assert_eq(b.shards, 3);
    cr_assert_str_eq(b.advertise[1], "7002");
    cr_assert_eq(config_log_level(&b), DT_LOG_NOTICE);
    cr_assert_eq(b.stop_timeout_ms, 1500);
    cr_assert_eq(b.window_bytes, a.window_bytes);
    cr_assert_eq(b.memory_quota, a.memory_quota);
    cr_assert(b.once);
    free(text);
    config_deinit(&a);
    config_deinit(&b);
}

static void
expect_refused(const char *const *args, int n, const char *text)
{
    struct dt_error err;
    struct config c;

    cr_assert_eq(config_load(&c, n, (char **)(uintptr_t)args, &err), DT_E_CONFIG);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    config_deinit(&c);
}

Test(config, what_could_not_be_bound_is_refused_before)
{
    char path[128] = "ipc:///tmp/", longest[128];
    const char *twice[] = {"psd", "--listen", "tcp://127.0.0.1:7000", "--listen",
                           "tcp://127.0.0.1:7000"};
    const char *ports[] = {"psd",           "--listen",   "tcp://127.0.0.1:65534", "--shards", "3",
                           "--shard-ports", "consecutive"};
    const char *admin[] = {"psd", "--admin", path};
    const char *deep[] = {"psd", "--listen", path, "--shards", "2"};
    struct dt_error err;
    struct config c;

    memset(path + 11, 'a', 6 + 107 - 2 + 1 - 11); /* one byte too long with ".1" */
    path[6 + 107 - 2 + 1] = 0;
    strcpy(longest, path + 1);
    memcpy(longest, "ipc://", 6);
    longest[6] = '/';
    expect_refused(twice, 5, "tcp://127.0.0.1:7000 is there twice");
    expect_refused(ports, 7, "no port 65536 for shard 2");
    expect_refused(deep, 5, "may have 105 bytes");
    cr_assert_eq(LOAD(&c, &err, "--admin", path), DT_OK, "%s", err.text);
    config_deinit(&c);
    strcat(path, "bb");
    expect_refused(admin, 3, "at most 107 bytes");
    cr_assert_eq(LOAD(&c, &err, "--listen", longest, "--shards", "2"), DT_OK, "%s", err.text);
    config_deinit(&c);
    cr_assert_eq(LOAD(&c, &err, "--listen", "tcp://127.0.0.1:*", "--listen", "tcp://127.0.0.1:*"),
                 DT_OK, "%s", err.text);
    config_deinit(&c);
}

Test(config, endpoints_that_meet_are_refused)
{
    const char *suffix[] = {"psd", "-l", "ipc:///x/q.1", "-l", "ipc:///x/q", "--shards", "2"};
    const char *ports[] = {
        "psd",      "-l", "tcp://127.0.0.1:5000", "-l",         "tcp://localhost:5001",
        "--shards", "2",  "--shard-ports",        "consecutive"};
    const char *any[] = {"psd", "--insecure", "-l", "tcp://*:5000", "-l", "tcp://127.0.0.1:5000"};
    const char *admin[] = {"psd", "-l", "ipc:///x/q", "--admin", "ipc:///x/q"};
    const char *later[] = {"psd", "-l", "ipc:///x/q", "--shards", "3", "--admin", "ipc:///x/q.2"};
    struct dt_error err;
    struct config c;

    expect_refused(suffix, 7,
                   "listen: ipc:///x/q.1 collides with shard 1 of ipc:///x/q: choose "
                   "another path for one of them");
    expect_refused(ports, 9,
                   "listen: tcp://localhost:5001 collides with shard 1 of "
                   "tcp://127.0.0.1:5000: choose another port");
    expect_refused(any, 6, "listen: tcp://*:5000 collides with shard 0 of tcp://127.0.0.1:5000");
    expect_refused(admin, 5, "admin: ipc:///x/q collides with shard 0 of ipc:///x/q");
    expect_refused(later, 7, "admin: ipc:///x/q.2 collides with shard 2 of ipc:///x/q");
    suffix[6] = "1";
    cr_expect_eq(config_load(&c, 7, (char **)(uintptr_t)suffix, &err), DT_OK, "%s", err.text);
    config_deinit(&c);
    cr_expect_eq(config_load(&c, 7, (char **)(uintptr_t)ports, &err), DT_OK, "%s", err.text);
    config_deinit(&c);
}
