/*
 * same_file.c - by what the paths lead to; where there is nothing yet, by their folder and last name. Any thread.
 */
#include "worker/cli/same_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool
same_inode(const char *a, const char *b)
{
    struct stat sa, sb;

    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

static const char *
last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "a/b" -> "a/.", "b" -> "." */
static void
folder(const char *path, char *out, size_t bytes)
{
    snprintf(out, bytes, "%.*s.", (int)(last_name(path) - path), path);
}

bool
same_file(const char *a, const char *b)
{
    char of_a[PATH_MAX], of_b[PATH_MAX];

    if (strcmp(a, b) == 0 || same_inode(a, b))
        return true;
    folder(a, of_a, sizeof(of_a));
    folder(b, of_b, sizeof(of_b));
    return strcmp(last_name(a), last_name(b)) == 0 && same_inode(of_a, of_b);
}
