/*
 * admin_path.c - where the admin socket goes; and the watchdog's judgement.
 */
#include "psd/daemon/admin_path.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "psd/daemon/watchdog.h"

TestSuite(admin_path, .timeout = 80);
TestSuite(watchdog, .timeout = 80);

static const char *
name_of(const char *endpoint)
{
    static char name[64];

    admin_name(endpoint, name, sizeof(name));
    return name;
}

Test(admin_path, is_named_after_the_first_endpoint)
{
    cr_expect_str_eq(name_of("tcp://127.0.0.1:2222"), "2222");
    cr_expect_str_eq(name_of("tcp://[::1]:49000"), "49000");
    cr_expect_str_eq(name_of("ipc:///tmp/x/ps0.sock"), "ps0");
    cr_expect_str_eq(name_of("ipc:///tmp/x/a b;c"), "a_b_c");
    cr_expect_str_eq(name_of("ipc://relative"), "relative");
}

static void
private_endpoint(const char *dir, char *listen, char *out)
{
    struct config c = {.private_dir = (char *)(uintptr_t)dir, .listen = (char *[]){listen, NULL}};
    struct dt_error err = {0};

    cr_assert_eq(admin_endpoint(&c, listen, out, &err), DT_OK, "%s", err.text);
}

Test(admin_path, never_equals_a_listener)
{
    char dir[] = "/tmp/psd-admin-XXXXXX", listen[64], want[64], out[DT_MAX_ENDPOINT + 1];
    struct config c = {.listen = (char *[]){listen, NULL}};
    struct dt_error err = {0};

    cr_assert_not_null(mkdtemp(dir));
    snprintf(listen, sizeof(listen), "ipc://%s/ps0.sock", dir);
    private_endpoint(dir, listen, out);
    snprintf(want, sizeof(want), "ipc://%s/ps0.admin.sock", dir);
    cr_expect_str_eq(out, want);
    setenv("RUNTIME_DIRECTORY", dir, 1);
    cr_assert_eq(admin_endpoint(&c, listen, out, &err), DT_OK);
    cr_expect_str_eq(out, want);
    rmdir(dir);
}

Test(admin_path, makes_its_directory_for_owner_and_group)
{
    char dir[] = "/tmp/psd-admin-XXXXXX", sub[64], out[DT_MAX_ENDPOINT + 1];
    char listen[] = "tcp://127.0.0.1:2222";
    struct stat st;

    cr_assert_not_null(mkdtemp(dir));
    snprintf(sub, sizeof(sub), "%s/psd", dir);
    private_endpoint(sub, listen, out);
    cr_assert_eq(stat(sub, &st), 0);
    cr_expect_eq(st.st_mode & 07777 & ~0750u, 0);
    cr_expect(strstr(out, "2222.admin.sock"));
    rmdir(sub);
    rmdir(dir);
}

Test(admin_path, none_and_an_explicit_one)
{
    char listen[] = "tcp://127.0.0.1:2222", out[DT_MAX_ENDPOINT + 1];
    struct config c = {.admin = (char *)"none", .listen = (char *[]){listen, NULL}};
    struct dt_error err = {0};

    cr_assert_eq(admin_endpoint(&c, listen, out, &err), DT_OK);
    cr_expect_str_eq(out, "");
    c.admin = (char *)"ipc:///tmp/mine.sock";
    cr_assert_eq(admin_endpoint(&c, listen, out, &err), DT_OK);
    cr_expect_str_eq(out, "ipc:///tmp/mine.sock");
}

Test(admin_path, a_directory_that_cannot_be_made_is_named)
{
    char listen[] = "tcp://127.0.0.1:2222", out[DT_MAX_ENDPOINT + 1];
    struct config c = {.private_dir = (char *)"/nonexistent/a", .listen = (char *[]){listen, NULL}};
    struct dt_error err = {0};

    cr_assert_eq(admin_endpoint(&c, listen, out, &err), DT_E_CANT_CREATE);
    cr_expect(strstr(err.text, "/nonexistent/a"), "%s", err.text);
}

Test(watchdog, sees_a_shard_that_does_not_turn)
{
    struct watchdog w = {0};

    cr_expect(watchdog_check(&w, 0, 5));
    cr_expect(watchdog_check(&w, 1, 9));
    cr_expect(watchdog_check(&w, 0, 6));
    cr_expect_not(watchdog_check(&w, 1, 9));
    cr_expect_not(watchdog_check(&w, 1, 9));
    cr_expect(watchdog_check(&w, 0, 7), "others are judged by themselves");
    cr_expect(watchdog_check(&w, 1, 10), "it turns again");
}
