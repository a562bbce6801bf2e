/*
 * check_command.c - dtworker check PATH. Threads: main alone.
 */
#include <stdio.h>

#include "worker/cli/command.h"
#include "worker/train/dataset.h"

int
check_command(struct settings *s, char **positional)
{
    struct dt_error err = {DT_OK, ""};
    char text[4096] = "";

    (void)s;
    enum dt_status r = dataset_check(positional[0], text, sizeof(text), &err);
    if (r != DT_OK)
        return command_fail(r, &err);
    fputs(text, stdout);
    return 0;
}
