/* same_file.c - two names of one file: links, other ways to a folder, files that are not there yet. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/cli/same_file.h"

TestSuite(same_file, .timeout = 60);

static char folder[64];

static const char *
in(char *out, size_t bytes, const char *name)
{
    snprintf(out, bytes, "%s/%s", folder, name);
    return out;
}

static bool
same(const char *a, const char *b)
{
    char pa[128], pb[128];

    return same_file(in(pa, sizeof(pa), a), in(pb, sizeof(pb), b));
}

Test(same_file, that_is_not_there_yet)
{
    snprintf(folder, sizeof(folder), "/tmp/same_file-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_expect(same("m", "m"));
    cr_expect(same("m", "./m"));
    cr_expect(same("m", "/./m"));
    cr_expect_not(same("m", "w"));
    cr_expect_not(same("m", "none/m"));
    cr_expect_eq(chdir(folder), 0);
    char path[128];
    cr_expect(same_file("m", in(path, sizeof(path), "m")));
    cr_expect_not(same_file("m", "w"));
    cr_expect_eq(chdir("/"), 0);
    rmdir(folder);
}

Test(same_file, that_is_there_under_two_names)
{
    char path[128], to[128];

    snprintf(folder, sizeof(folder), "/tmp/same_file-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    int fd = open(in(path, sizeof(path), "m"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(symlink(path, in(to, sizeof(to), "link")), 0);
    cr_expect(same("m", "link"));
    cr_expect_not(same("m", "w"));
    unlink(to);
    unlink(path);
    rmdir(folder);
}
