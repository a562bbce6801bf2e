/*
 * random.c - unpredictable ids from the kernel. Any thread.
 */
#include "proto/base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void
dt_random_bytes(void *out, unsigned n)
{
    unsigned char *p = out;

    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);

        if (got < 0) {
            if (errno == EINTR)
                continue;
            abort(); /* a kernel without getrandom: nothing here is safe then */
        }
        p += got;
        n -= (unsigned)got;
    }
}

uint64_t
dt_random_u64(void)
{
    uint64_t x;

    do
        dt_random_bytes(&x, sizeof(x));
    while (x == 0);
    return x;
}
