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
    struct dataset_options o = {
        .label = s->label, .header = (enum dataset_header)s->header, .target = DATASET_EITHER};

    enum dt_status r = dataset_check_with(&o, positional[0], text, sizeof(text), &err);
    if (r != DT_OK)
        return command_fail(r, &err);
    fputs(text, stdout);
    return 0;
}
