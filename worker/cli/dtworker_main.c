/*
 * dtworker_main.c - the dtworker program. Memory settings belong to programs, not to the library.
 */
#include <stdio.h>

#include "proto/base/allocation.h"
#include "proto/base/log.h"
#include "proto/base/standard.h"
#include "worker/cli/command.h"

int
main(int argc, char **argv)
{
    dt_standard_files_open();
    dt_allocation_keep();
    int code = command_main(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        dt_log(DT_LOG_ERR, "standard output could not be written");
        code = 74;
    }
    return code;
}
