/* cluster_dir.c - the directory of a cluster that was killed goes with the last process of it, by the next one. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/cli/cluster_dir.h"

static char base[] = "/tmp/cluster-dir-XXXXXX";

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static void
begin(void)
{
    cr_assert_not_null(mkdtemp(base));
    setenv("TMPDIR", base, 1);
}

static void
end(void)
{
    nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(cluster_dir, .timeout = 40, .init = begin, .fini = end);

static struct cluster_dir
create(void)
{
    struct dt_error err = {DT_OK, ""};
    struct cluster_dir d;

    cr_assert_eq(cluster_dir_create(&d, &err), DT_OK, "%s", err.text);
    cr_assert(strncmp(d.path, base, strlen(base)) == 0, "%s", d.path);
    return d;
}

static void
expect_there(const struct cluster_dir *d, bool there)
{
    cr_expect_eq(access(d->path, F_OK) == 0, there, "%s", d->path);
}

Test(cluster_dir, it_goes_with_what_is_in_it)
{
    struct cluster_dir d = create(), copy = d;
    char path[160];
    struct stat st;

    cr_assert_eq(stat(d.path, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0700);
    snprintf(path, sizeof(path), "%s/deep", d.path);
    cr_assert_eq(mkdir(path, 0700), 0);
    cluster_dir_remove(&d);
    expect_there(&copy, false);
    cluster_dir_remove(&d);
}

Test(cluster_dir, that_of_a_dead_one_is_removed_by_the_next)
{
    struct cluster_dir dead = create(), living = create();

    close(dead.lock); /* as its end does */
    struct cluster_dir next = create();
    expect_there(&dead, false);
    expect_there(&living, true);
    expect_there(&next, true);
    cluster_dir_remove(&living);
    cluster_dir_remove(&next);
}

Test(cluster_dir, a_child_that_lives_on_keeps_it)
{
    struct cluster_dir d = create();
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    cr_assert_gt(pid, 0);
    close(d.lock);
    struct cluster_dir next = create();
    expect_there(&d, true);
    cluster_dir_remove(&next);
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    next = create();
    expect_there(&d, false);
    cluster_dir_remove(&next);
}

Test(cluster_dir, what_no_cluster_has_locked_is_not_touched)
{
    struct cluster_dir unknown = {.lock = -1}, open = {.lock = -1}, next;
    char marker[160];

    snprintf(unknown.path, sizeof(unknown.path), "%s/dtworker-unknown", base);
    snprintf(open.path, sizeof(open.path), "%s/dtworker-open", base);
    cr_assert_eq(mkdir(unknown.path, 0700), 0);
    cr_assert_eq(mkdir(open.path, 0755), 0);
    snprintf(marker, sizeof(marker), "%s/locked", open.path);
    cr_assert_eq(symlink("dtworker-open", marker), 0);
    next = create();
    expect_there(&unknown, true);
    expect_there(&open, true);
    cluster_dir_remove(&next);
}

Test(cluster_dir, what_was_given_another_name_to_keep_it_is_not_touched)
{
    struct cluster_dir dead = create(), kept = {.lock = -1}, next;

    snprintf(kept.path, sizeof(kept.path), "%s/dtworker-backup", base);
    cr_assert_eq(rename(dead.path, kept.path), 0);
    close(dead.lock);
    next = create();
    expect_there(&kept, true);
    cr_assert_eq(rename(kept.path, dead.path), 0);
    cluster_dir_remove(&next);
    next = create();
    expect_there(&dead, false);
    cluster_dir_remove(&next);
}
