/* command.c - the whole program in-process: which exit code for what. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>

#include "worker/cli/command.h"
#include "worker/cli/exit_code.h"

static void
redirect(void)
{
    cr_redirect_stdout();
    cr_redirect_stderr();
}

TestSuite(command, .init = redirect, .timeout = 120);

#define RUN(...)                                                                                   \
    command_main((int)(sizeof((char *[]){"dtworker", __VA_ARGS__}) / sizeof(char *)),              \
                 (char *[]){"dtworker", __VA_ARGS__, NULL})

Test(command, every_command_has_help)
{
    const char *names[] = {"train", "run", "eval", "check"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s", names[i]);
        cr_expect_not_null(command_find(name), "%s", name);
        cr_expect_eq(RUN(name, "--help"), 0, "%s", name);
    }
    cr_expect_eq(RUN("--help"), 0);
    cr_expect_eq(RUN("--version"), 0);
}

Test(command, wrong_usage_is_64)
{
    cr_expect_eq(command_main(1, (char *[]){"dtworker", NULL}), 64);
    cr_expect_eq(RUN("fly"), 64);
    cr_expect_eq(RUN("train", "--lerning-rate", "1"), 64);
    cr_expect_eq(RUN("train", "--lr"), 64);
    cr_expect_eq(RUN("train", "--model=toy", "--algorithm=local", "stray"), 64);
    cr_expect_eq(RUN("train"), 64);
    cr_expect_eq(RUN("train", "--model=toy", "--job=j", "--ps=tcp://h:1,host:2"), 64);
    cr_expect_eq(RUN("run"), 64);
    cr_expect_eq(RUN("eval"), 64);
    cr_expect_eq(RUN("check"), 64);
    cr_expect_eq(RUN("check", "a", "b"), 64);
}

Test(command, input_that_is_not_there_is_66)
{
    cr_expect_eq(RUN("check", "/nonexistent/data"), 66);
    cr_expect_eq(RUN("eval", "--model-file", "/nonexistent/w", "--data", "/nonexistent"), 66);
    cr_expect_eq(RUN("train", "--algorithm=local", "--data=/nonexistent/data"), 66);
}

Test(command, output_that_cannot_be_made_is_73)
{
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--save=/nonexistent/w"), 73);
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--metrics=/nonexistent/m"), 73);
}

Test(command, options_that_do_not_go_together_are_64)
{
    cr_expect_eq(
        RUN("train", "--algorithm=local", "--model=toy", "--save=/tmp/one", "--metrics=/tmp/./one"),
        64);
    cr_expect_eq(RUN("run", "--model=toy", "--save=one", "--metrics=one"), 64);
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--header=yes"), 64);
    cr_expect_eq(RUN("train", "--algorithm=local", "--data=d", "--header=maybe"), 64);
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--replicas=65"), 64);
}

Test(command, local_training_ends_with_0)
{
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--steps=10", "--lr=1e-4"), 0);
}

Test(command, a_loss_that_is_not_finite_is_65)
{
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--steps=100", "--lr=1e8"), 65);
}

Test(command, a_final_loss_that_is_not_finite_is_65)
{
    /* One step; the update overflows after the only gradient was fine. */
    cr_expect_eq(RUN("train", "--algorithm=local", "--model=toy", "--steps=5", "--lr=1e9"), 65);
}

Test(command, outcomes_of_the_library_have_sysexits)
{
    cr_expect_eq(exit_code_of(DTW_OK), 0);
    cr_expect_eq(exit_code_of(DTW_UNAVAILABLE), 69);
    cr_expect_eq(exit_code_of(DTW_RESOLVE), 69);
    cr_expect_eq(exit_code_of(DTW_MISMATCH), 78);
    cr_expect_eq(exit_code_of(DTW_RANK_TAKEN), 75);
    cr_expect_eq(exit_code_of(DTW_JOB_COMPLETE), 73);
    cr_expect_eq(exit_code_of(DTW_JOB_FAILED), 75);
    cr_expect_eq(exit_code_of(DTW_NO_JOB), 75);
    cr_expect_eq(exit_code_of(DTW_NOT_FINITE), 65);
    cr_expect_eq(exit_code_of(DTW_PROTOCOL), 76);
    cr_expect_eq(exit_code_of((enum dtw_status)1000), 70);
}
