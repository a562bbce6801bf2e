/*
 * ipc.c - the listening socket of an ipc endpoint, guarded by a lock on PATH.lock.
 *
 * Invariants: whoever holds the lock on the inode that PATH.lock names owns PATH; the lock file is
 * unlinked only by its holder. A process that locks an inode which the path no longer names tries
 * again. Used by the thread that binds the router.
 */
#include "proto/net/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCK_TRIES 100
#define BACKLOG 512

struct dt_ipc_lock {
    struct dt_ipc_lock *next;
    int fd; /* owned: of the lock file */
    bool has_socket;
    struct stat socket; /* of our socket file */
    char path[DT_IPC_PATH_BYTES + 1];
    char lock_path[DT_IPC_PATH_BYTES + 6];
};

static enum dt_status
fail_errno(struct dt_error *err, const char *what, const char *path, int error)
{
    enum dt_status code = error == EACCES || error == EPERM ? DT_E_DENIED
                          : error == EADDRINUSE             ? DT_E_ADDRESS_IN_USE
                                                            : DT_E_CANT_CREATE;

    return dt_fail(err, code, "cannot %s %s: %s", what, path, strerror(error));
}

static enum dt_status
fail_in_use(const struct dt_ipc_lock *lock, struct dt_error *err)
{
    char pid[16] = "";
    ssize_t n = pread(lock->fd, pid, sizeof(pid) - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return dt_fail(err, DT_E_ADDRESS_IN_USE,
                   "ipc://%s is in use by process %s: stop it or choose another path", lock->path,
                   pid[0] ? pid : "(unknown)");
}

/* Does the path still name the file that was locked? */
static bool
is_same_file(const char *path, int fd)
{
    struct stat by_path, by_fd;

    return stat(path, &by_path) == 0 && fstat(fd, &by_fd) == 0 && by_path.st_ino == by_fd.st_ino &&
           by_path.st_dev == by_fd.st_dev;
}

static enum dt_status
write_pid(const struct dt_ipc_lock *lock, struct dt_error *err)
{
    char pid[16];
    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

    if (ftruncate(lock->fd, 0) != 0 || pwrite(lock->fd, pid, (size_t)n, 0) != n)
        return fail_errno(err, "write", lock->lock_path, errno);
    return DT_OK;
}

static enum dt_status
take_lock(struct dt_ipc_lock *lock, struct dt_error *err)
{
    int tries, flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

    for (tries = 0; tries < LOCK_TRIES; tries++) {
        lock->fd = open(lock->lock_path, flags, 0600);
        if (lock->fd < 0)
            return fail_errno(err, "create the lock file", lock->lock_path, errno);
        if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR)
                goto again;
            return errno == EWOULDBLOCK ? fail_in_use(lock, err)
                                        : fail_errno(err, "lock", lock->lock_path, errno);
        }
        if (is_same_file(lock->lock_path, lock->fd))
            return write_pid(lock, err);
    again:
        close(lock->fd);
        lock->fd = -1;
    }
    return dt_fail(err, DT_E_ADDRESS_IN_USE, "%s changes hands all the time", lock->lock_path);
}

static struct sockaddr_un
address_of(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    memcpy(a.sun_path, path, strlen(path) + 1);
    return a;
}

/* Somebody listens there who does not know of the lock. */
static bool
is_alive(const char *path)
{
    struct sockaddr_un a = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive;

    if (fd < 0)
        return false;
    alive = connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 || errno == EAGAIN;
    close(fd);
    return alive;
}

static enum dt_status
remove_stale(const char *path, struct dt_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? DT_OK : fail_errno(err, "look at", path, errno);
    if (!S_ISSOCK(st.st_mode))
        return dt_fail(err, DT_E_CANT_CREATE,
                       "%s exists and is no socket: remove it or choose another path", path);
    if (is_alive(path))
        return dt_fail(err, DT_E_ADDRESS_IN_USE,
                       "ipc://%s is in use by another program: choose another path", path);
    if (unlink(path) != 0 && errno != ENOENT)
        return fail_errno(err, "remove the old socket", path, errno);
    return DT_OK;
}

/* The mode is set between bind and listen: nobody can connect before. */
static enum dt_status
bind_socket(struct dt_ipc_lock *lock, unsigned mode, int fd, struct dt_error *err)
{
    struct sockaddr_un a = address_of(lock->path);

    if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) != 0)
        return fail_errno(err, "bind", lock->path, errno);
    lock->has_socket = lstat(lock->path, &lock->socket) == 0;
    if (mode && chmod(lock->path, (mode_t)mode) != 0)
        return fail_errno(err, "set the mode of", lock->path, errno);
    if (listen(fd, BACKLOG) != 0)
        return fail_errno(err, "listen on", lock->path, errno);
    return DT_OK;
}

static enum dt_status
open_socket(struct dt_ipc_lock *lock, unsigned mode, int *fd, struct dt_error *err)
{
    enum dt_status status = remove_stale(lock->path, err);

    if (status != DT_OK)
        return status;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return fail_errno(err, "create a socket for", lock->path, errno);
    status = bind_socket(lock, mode, *fd, err);
    if (status != DT_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* Closes without touching the files: the lock is not ours. */
static void
forget(struct dt_ipc_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock);
}

struct dt_ipc_lock *
dt_ipc_listen(const char *path, unsigned mode, int *fd, struct dt_error *err)
{
    struct dt_ipc_lock *lock;

    *fd = -1;
    if (strlen(path) > DT_IPC_PATH_BYTES) {
        dt_fail(err, DT_E_CANT_CREATE,
                "ipc path %s is longer than %d bytes: choose a shorter directory", path,
                DT_IPC_PATH_BYTES);
        return NULL;
    }
    lock = calloc(1, sizeof(*lock));
    if (!lock) {
        dt_fail(err, DT_E_NO_MEMORY, "no memory to bind %s", path);
        return NULL;
    }
    lock->fd = -1;
    snprintf(lock->path, sizeof(lock->path), "%s", path);
    snprintf(lock->lock_path, sizeof(lock->lock_path), "%s.lock", path);
    if (take_lock(lock, err) != DT_OK) {
        forget(lock);
        return NULL;
    }
    if (open_socket(lock, mode, fd, err) != DT_OK) {
        dt_ipc_release(lock);
        return NULL;
    }
    return lock;
}

struct dt_ipc_lock *
dt_ipc_push(struct dt_ipc_lock *list, struct dt_ipc_lock *lock)
{
    lock->next = list;
    return lock;
}

static void
remove_files(const struct dt_ipc_lock *lock)
{
    struct stat st;

    if (lock->has_socket && lstat(lock->path, &st) == 0 && st.st_ino == lock->socket.st_ino &&
        st.st_dev == lock->socket.st_dev)
        unlink(lock->path);
    if (is_same_file(lock->lock_path, lock->fd))
        unlink(lock->lock_path);
}

void
dt_ipc_release(struct dt_ipc_lock *list)
{
    while (list) {
        struct dt_ipc_lock *next = list->next;

        remove_files(list);
        forget(list);
        list = next;
    }
}
