/*
 * cluster_dir.c - make and remove the directory of a private cluster, and those of dead ones.
 *
 * Invariant: MARKER, a symbolic link to the directory's own name, is made only once the directory is locked, and the
 * lock goes with the last process of the cluster. So who finds it and gets the lock knows that no process of it is
 * left; what somebody has copied or given another name to keep it is left alone. Threads: main alone.
 */
#include "worker/cli/cluster_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/log.h"

#define PREFIX "dtworker-"
#define MARKER "locked"
#define SOCKET_PATH_MAX 80 /* of the directory: an ipc path ends at 107 bytes, shards add to it */

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static bool
remove_all(const char *path)
{
    return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0;
}

static int
open_dir(const char *path, int flags)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | flags);
}

static const char *
name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static bool
is_marked(int fd, const char *name)
{
    char of[128];
    ssize_t n = readlinkat(fd, MARKER, of, sizeof(of));

    return n == (ssize_t)strlen(name) && memcmp(of, name, (size_t)n) == 0;
}

/* The directory at `fd` is of this user, closed to others, and was locked by a cluster that is no more. */
static bool
is_dead(int fd, const char *name)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0 &&
           is_marked(fd, name) && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void
remove_if_dead(const char *path)
{
    int fd = open_dir(path, O_CLOEXEC);

    if (fd < 0)
        return;
    if (is_dead(fd, name_of(path)) && remove_all(path))
        dt_log(DT_LOG_INFO, "%s is removed: its cluster was killed", path);
    close(fd);
}

static void
remove_dead(const char *base)
{
    struct cluster_dir d;
    struct dirent *e;
    DIR *list = opendir(base);

    while (list && (e = readdir(list)) != NULL) {
        int n = snprintf(d.path, sizeof(d.path), "%s/%s", base, e->d_name);
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 && n < (int)sizeof(d.path))
            remove_if_dead(d.path);
    }
    if (list)
        closedir(list);
}

/* Where the file system has no locks nobody else removes it. */
static void
lock(struct cluster_dir *d)
{
    d->lock = open_dir(d->path, 0);
    if (d->lock >= 0 && flock(d->lock, LOCK_EX | LOCK_NB) == 0 &&
        symlinkat(name_of(d->path), d->lock, MARKER) != 0)
        dt_log(DT_LOG_DEBUG, "%s will not be removed by others: %s", d->path, strerror(errno));
}

enum dt_status
cluster_dir_create(struct cluster_dir *d, struct dt_error *err)
{
    const char *base = getenv("TMPDIR");

    *d = (struct cluster_dir){.lock = -1};
    if (!base || !*base || strlen(base) + sizeof("/" PREFIX "XXXXXX") > SOCKET_PATH_MAX)
        base = "/tmp";
    remove_dead(base);
    snprintf(d->path, sizeof(d->path), "%s/" PREFIX "XXXXXX", base);
    if (!mkdtemp(d->path)) {
        int why = errno;
        d->path[0] = '\0';
        return dt_fail(err, DT_E_CANT_CREATE, "a private directory in %s: %s: set TMPDIR", base,
                       strerror(why));
    }
    lock(d);
    return DT_OK;
}

void
cluster_dir_remove(struct cluster_dir *d)
{
    if (d->path[0] && !remove_all(d->path))
        dt_log(DT_LOG_WARNING, "%s could not be removed: %s", d->path, strerror(errno));
    d->path[0] = '\0';
    if (d->lock >= 0)
        close(d->lock);
    d->lock = -1;
}
