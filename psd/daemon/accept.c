/*
 * accept.c - see accept.h.
 *
 * Invariant: `reserve` is a descriptor or -1, and changes under the lock. accept4() runs on libzmq's I/O
 * threads, the rest on the main thread.
 */
#include "psd/daemon/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int reserve = -1;
static _Atomic uint64_t n_turned_away;

static void
refill(void)
{
    if (reserve < 0)
        reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool
accept_reserve(void)
{
    bool done;

    pthread_mutex_lock(&lock);
    refill();
    done = reserve >= 0;
    pthread_mutex_unlock(&lock);
    return done;
}

void
accept_release(void)
{
    pthread_mutex_lock(&lock);
    if (reserve >= 0)
        close(reserve);
    reserve = -1;
    pthread_mutex_unlock(&lock);
}

uint64_t
accept_turned_away(void)
{
    return atomic_load(&n_turned_away);
}

static int
accept_raw(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    return (int)syscall(SYS_accept4, fd, address, len, flags);
}

/* Take the connection with the reserve's place and close it; the reserve comes back. */
static int
turn_away(int fd)
{
    int got, error;

    pthread_mutex_lock(&lock);
    if (reserve >= 0)
        close(reserve);
    reserve = -1;
    got = accept_raw(fd, NULL, NULL, SOCK_CLOEXEC);
    error = got < 0 ? errno : ECONNABORTED;
    if (got >= 0)
        close(got);
    refill();
    pthread_mutex_unlock(&lock);
    if (got >= 0)
        atomic_fetch_add(&n_turned_away, 1);
    errno = error == EMFILE ? ENFILE : error; /* libzmq aborts on EMFILE */
    return -1;
}

/* What libzmq calls in place of libc's: the program's own symbol comes first. */
__attribute__((visibility("default"))) int
accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    int got = accept_raw(fd, address, len, flags);

    return got >= 0 || (errno != EMFILE && errno != ENFILE) ? got : turn_away(fd);
}
