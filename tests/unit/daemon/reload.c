/*
 * reload.c - what SIGHUP takes over, and what has to wait for a restart.
 */
#include "psd/daemon/reload.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(reload, .timeout = 80);

static void
load(struct config *c, const char *a, const char *b, const char *d)
{
    char *argv[] = {(char *)"psd",        (char *)"-o", (char *)(uintptr_t)a, (char *)"-o",
                    (char *)(uintptr_t)b, (char *)"-o", (char *)(uintptr_t)d, NULL};
    struct dt_error err = {0};

    cr_assert_eq(config_load(c, 7, argv, &err), DT_OK, "%s", err.text);
}

Test(reload, takes_what_is_marked)
{
    struct config start, live, fresh;
    struct reload_count n;

    load(&start, "window=32", "memory_quota=1GiB", "log_level=info");
    load(&fresh, "window=16", "memory_quota=2MiB", "log_level=warning");
    live = start;
    n = reload_adopt(&live, &fresh, start.window);
    cr_expect_eq(n.changed, 3);
    cr_expect_eq(n.refused, 0);
    cr_expect_eq(live.window, 16);
    cr_expect_eq(live.memory_quota, 2 << 20);
    cr_expect_eq(config_log_level(&live), DT_LOG_WARNING);
    n = reload_adopt(&live, &fresh, start.window);
    cr_expect_eq(n.changed, 0, "the second time there is nothing new");
    config_deinit(&start);
    config_deinit(&fresh);
}

Test(reload, leaves_what_needs_a_restart)
{
    struct config start, live, fresh;
    struct reload_count n;

    load(&start, "shards=2", "listen=tcp://127.0.0.1:2222", "stop_timeout=5s");
    load(&fresh, "shards=3", "listen=tcp://127.0.0.1:2223", "stop_timeout=7s");
    live = start;
    n = reload_adopt(&live, &fresh, start.window);
    cr_expect_eq(n.changed, 1);
    cr_expect_eq(n.refused, 2, "not io_threads, which follows shards");
    cr_expect_eq(live.shards, 2);
    cr_expect_eq(live.listen, start.listen);
    cr_expect_eq(live.stop_timeout_ms, 7000);
    config_deinit(&start);
    config_deinit(&fresh);
}

Test(reload, a_window_is_never_above_the_first)
{
    struct config start, live, fresh;
    struct reload_count n;

    load(&start, "window=32", "shards=1", "log_level=err");
    load(&fresh, "window=64", "shards=1", "log_level=err");
    live = start;
    n = reload_adopt(&live, &fresh, start.window);
    cr_expect_eq(n.changed, 0);
    cr_expect_eq(n.refused, 1);
    cr_expect_eq(live.window, 32);
    config_deinit(&start);
    config_deinit(&fresh);
}

Test(reload, no_text_and_no_list_is_marked)
{
    const struct dt_option *row;

    for (row = config_table; row->name; row++) {
        if (row->scope & DT_OPT_RELOAD)
            cr_expect(row->type != DT_OPT_STRING && row->type != DT_OPT_LIST &&
                          row->type != DT_OPT_CSV,
                      "%s: its memory would be shared", row->name);
    }
}
