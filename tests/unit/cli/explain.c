/* explain.c - a worker that differs from its job reads of options, with both values and what to do. */
#include <criterion/criterion.h>
#include <string.h>

#include "proto/wire/declare.h"
#include "proto/wire/params.h"
#include "worker/cli/explain.h"
#include "worker/cli/settings.h"

TestSuite(explain, .timeout = 40);

#define WHERE "ps task 0 at ipc:///run/a"
#define ADVICE                                                                                     \
    "; give all workers the same, or this one another --job (--fresh replaces one that has no "    \
    "workers any more)"

static void
expect_line(enum dtw_status status, const char *text, const char *line)
{
    char out[EXPLAIN_MAX];

    explain(status, text, out);
    cr_expect_str_eq(out, line, "%s", out);
}

Test(explain, keys_of_the_job_are_options)
{
    expect_line(DTW_MISMATCH, WHERE ": lease_ms: the job has 10000, this worker says 2000",
                WHERE ": --lease (in ms): the job has 10000, this worker says 2000" ADVICE);
    expect_line(DTW_MISMATCH, WHERE ": unheard_of: the job has 1, this worker says 2",
                WHERE ": unheard_of: the job has 1, this worker says 2" ADVICE);
}

Test(explain, the_request_that_was_refused_is_no_matter)
{
    expect_line(
        DTW_MISMATCH,
        WHERE ", DECLARE: variable dense/kernel: lr: the job has 0.1, this worker says 0.25",
        WHERE ": variable dense/kernel: --lr: the job has 0.1, this worker says 0.25" ADVICE);
    expect_line(DTW_MISMATCH,
                WHERE ", DECLARE: variable a: cosine.steps: the job has nothing, this worker "
                      "says 9",
                WHERE ": variable a: --lr-schedule (cosine.steps): the job has nothing, this "
                      "worker says 9" ADVICE);
    expect_line(DTW_MISMATCH,
                WHERE ", DECLARE: the job has 2 variables, this worker declares 4; variable a: "
                      "name: the job has a, this worker says b",
                WHERE ": --model or --partition: the job has 2 variables, this worker declares 4; "
                      "variable a: name: the job has a, this worker says b" ADVICE);
}

Test(explain, what_says_itself_what_to_do_stays)
{
    expect_line(DTW_MISMATCH, WHERE ": this worker says task 1: give --ps in the same order",
                WHERE ": this worker says task 1: give --ps in the same order");
    expect_line(DTW_MISMATCH, WHERE ": rank 1 would join late",
                WHERE ": rank 1 would join late; give this worker another --job (--fresh replaces "
                      "one that has no workers any more)");
    expect_line(DTW_LOST, "rank 1 lost its place", "rank 1 lost its place");
    expect_line(DTW_NO_MEMORY, "", dtw_strerror(DTW_NO_MEMORY));
    expect_line(DTW_RANK_TAKEN, "rank 0 is taken",
                "rank 0 is taken; M workers have --workers M and the ranks 0 to M-1");
}

/* A job's parameter that differs is called by an option of dtworker, whichever it is. */
static void
expect_option(const struct dt_job_params *job, const struct dt_job_params *mine)
{
    char text[DT_MAX_TEXT + 64], out[EXPLAIN_MAX], name[32];
    const struct dt_option *row;
    struct dt_error err;

    cr_assert_eq(dt_job_params_compare(job, mine, &err), DT_R_MISMATCH);
    snprintf(text, sizeof(text), WHERE ": %s", err.text);
    explain(DTW_MISMATCH, text, out);
    cr_assert(strncmp(out, WHERE ": --", sizeof(WHERE) + 3) == 0, "no option: %s", out);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(out + sizeof(WHERE) + 3, " :"),
             out + sizeof(WHERE) + 3);
    for (row = settings_train; row->name && strcmp(row->name, name) != 0; row++)
        ;
    cr_expect(row->name != NULL, "no option of train: --%s", name);
}

#define EXPECT_OPTION(field, value)                                                                \
    do {                                                                                           \
        struct dt_job_params job_, mine_;                                                          \
        dt_job_params_default(&job_);                                                              \
        mine_ = job_;                                                                              \
        mine_.field = (value);                                                                     \
        expect_option(&job_, &mine_);                                                              \
    } while (0)

Test(explain, every_parameter_of_a_job_has_its_option)
{
    EXPECT_OPTION(workers, 2);
    EXPECT_OPTION(tasks, 2);
    EXPECT_OPTION(consistency, DT_ASYNC);
    EXPECT_OPTION(locking, DT_LOCK_NONE);
    EXPECT_OPTION(aggregate, 1);
    EXPECT_OPTION(reduce, DT_REDUCE_SUM);
    EXPECT_OPTION(on_loss, DT_ON_LOSS_FAIL);
    EXPECT_OPTION(lease_ms, 1);
    EXPECT_OPTION(start_timeout_ms, 1);
    EXPECT_OPTION(round_timeout_ms, 1);
    EXPECT_OPTION(max_bad, 1);
    EXPECT_OPTION(max_staleness, 1);
    EXPECT_OPTION(staleness_bound, 1);
    EXPECT_OPTION(deterministic, 1);
    EXPECT_OPTION(kernel[0], 'x');
}
