/*
 * dtworker_main.c - the dtworker program. Memory settings belong to programs, not to the library.
 */
#include <malloc.h>
#include <stdio.h>

#include "proto/base/log.h"
#include "proto/base/standard.h"
#include "worker/cli/command.h"

/* Frames of up to 1 MiB come and go: without this each one is mapped, faulted in and unmapped again. */
static void
keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_TOP_PAD, 16 << 20);
}

int
main(int argc, char **argv)
{
    dt_standard_files_open();
    keep_memory();
    int code = command_main(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        dt_log(DT_LOG_ERR, "standard output could not be written");
        code = 74;
    }
    return code;
}
