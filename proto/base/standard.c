/*
 * standard.c - standard input, output and error are open. One thread, before all else.
 */
#include "proto/base/standard.h"

#include <fcntl.h>
#include <unistd.h>

void
dt_standard_files_open(void)
{
    int fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* open takes the lowest free number: that is fd, as those below are open */
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(71);
    }
}
