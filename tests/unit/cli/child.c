/* child.c - children are started, named in their end, stopped, and die with their parent. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "worker/cli/child.h"

TestSuite(child, .timeout = 120);

static struct child
start(const char *script)
{
    struct child c;
    struct dt_error err = {DT_OK, ""};
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct child_plan plan = {"/bin/sh", argv, -1, -1, false};

    cr_assert_eq(child_start(&c, "worker 1", &plan, &err), DT_OK, "%s", err.text);
    return c;
}

Test(child, its_exit_code_is_told)
{
    struct child c = start("exit 7");
    char text[64];

    cr_assert(children_wait(&c, 1, 10000));
    cr_expect_str_eq(child_end_text(&c, text, sizeof(text)), "exit code 7");
    cr_expect_not(child_is_running(&c));
}

Test(child, a_signal_is_named)
{
    struct child c = start("exec sleep 60");
    char text[64];

    child_signal(&c, SIGKILL);
    cr_assert(children_wait(&c, 1, 10000));
    cr_expect_str_eq(child_end_text(&c, text, sizeof(text)), "signal 9 (Killed)");
}

Test(child, one_that_ignores_the_signal_is_killed)
{
    int fds[2];
    char byte;

    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
    struct child c;
    struct dt_error err = {DT_OK, ""};
    char *argv[] = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", NULL};
    struct child_plan plan = {"/bin/sh", argv, fds[1], -1, false};
    cr_assert_eq(child_start(&c, "worker 2", &plan, &err), DT_OK, "%s", err.text);
    cr_assert_eq(read(fds[0], &byte, 1), 1); /* the trap is set */
    children_stop(&c, 1, SIGTERM, 200);
    cr_expect(c.ended);
    cr_expect(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL);
    close(fds[0]);
    close(fds[1]);
}

Test(child, a_program_that_is_not_there_ends_with_127)
{
    struct child c;
    struct dt_error err = {DT_OK, ""};
    char *argv[] = {"x", NULL};
    struct child_plan plan = {"/nonexistent/program", argv, -1, -1, false};

    cr_assert_eq(child_start(&c, "psd 0", &plan, &err), DT_OK, "%s", err.text);
    cr_assert(children_wait(&c, 1, 10000));
    cr_expect_eq(WEXITSTATUS(c.status), 127);
}

Test(child, it_ends_when_its_parent_is_killed)
{
    int fds[2];
    char byte;

    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
    pid_t middle = fork();
    if (middle == 0) {
        char *argv[] = {"sh", "-c", "echo ready; exec sleep 60", NULL};
        struct child_plan plan = {"/bin/sh", argv, fds[1], -1, false};
        struct child c;
        child_start(&c, "worker 0", &plan, NULL);
        close(fds[1]);
        pause();
        _exit(0);
    }
    close(fds[1]);
    cr_assert_eq(read(fds[0], &byte, 1), 1);
    kill(middle, SIGKILL);
    waitpid(middle, NULL, 0);
    int64_t start_ms = dt_now_ms();
    while (read(fds[0], &byte, 1) > 0) { /* the end of the pipe: the grandchild is gone */
    }
    cr_expect_lt(dt_now_ms() - start_ms, 10000);
    close(fds[0]);
}
