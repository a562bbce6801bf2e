/*
 * leftovers.c - files to unlink when psd ends without closing its sockets.
 *
 * Invariants: the list grows before a handler is set that reads it, and `n_files` counts whole entries only.
 * Number, device and time of change tell a file from a later one, which may have the same number.
 * leftovers_remove uses lstat(2) and unlink(2) only. Main thread.
 */
#include "psd/daemon/leftovers.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/wire/limits.h"

struct leftover {
    char path[DT_MAX_ENDPOINT + 8];
    struct stat st;
};

static struct leftover *files; /* owned, kept until the process ends */
static size_t capacity;
static volatile sig_atomic_t n_files;

static bool
has_room(void)
{
    size_t more = capacity ? 2 * capacity : 16;
    struct leftover *list;

    if ((size_t)n_files < capacity)
        return true;
    list = realloc(files, more * sizeof(*files));
    if (!list)
        return false;
    files = list;
    capacity = more;
    return true;
}

static void
note(const char *path, const char *end)
{
    struct leftover *f;

    if (!has_room())
        return; /* the file stays, then */
    f = &files[n_files];
    snprintf(f->path, sizeof(f->path), "%s%s", path, end);
    if (lstat(f->path, &f->st) == 0)
        n_files = n_files + 1;
}

void
leftovers_note(const char *endpoint)
{
    if (strncmp(endpoint, "ipc://", 6) != 0)
        return;
    note(endpoint + 6, ""); /* the socket first: the lock guards it */
    note(endpoint + 6, ".lock");
}

void
leftovers_forget(void)
{
    n_files = 0;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void
leftovers_remove(void)
{
    struct stat now;
    int i;

    for (i = 0; i < n_files; i++) {
        if (lstat(files[i].path, &now) == 0 && is_same(&now, &files[i].st))
            unlink(files[i].path);
    }
}
