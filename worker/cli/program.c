/*
 * program.c - see program.h.
 */
#include "worker/cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
program_in(const char *dir, size_t dir_len, const char *name, char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "%.*s/%s", (int)dir_len, dir, name);

    return n > 0 && (size_t)n < bytes && access(out, X_OK) == 0;
}

bool
program_in_path(const char *name, char *out, size_t bytes)
{
    for (const char *p = getenv("PATH"); p && *p;) {
        size_t len = strcspn(p, ":");
        if (len > 0 && program_in(p, len, name, out, bytes))
            return true;
        p += len + (p[len] == ':');
    }
    return false;
}
