/*
 * admin_path.c - chooses the admin socket's path and makes its directory. Main thread.
 *
 * Invariant: the path never equals that of a listener (a private directory may hold both).
 */
#include "psd/daemon/admin_path.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/net/context.h"

bool
admin_directory(const struct config *c, char *out, size_t bytes)
{
    const char *systemd = getenv("RUNTIME_DIRECTORY"), *xdg = getenv("XDG_RUNTIME_DIR");
    int n;

    if (c->private_dir && c->private_dir[0])
        n = snprintf(out, bytes, "%s", c->private_dir);
    else if (systemd && systemd[0] == '/')
        n = snprintf(out, bytes, "%.*s", (int)strcspn(systemd, ":"), systemd);
    else if (geteuid() == 0)
        n = snprintf(out, bytes, "/run/psd");
    else if (xdg && xdg[0] == '/')
        n = snprintf(out, bytes, "%s/psd", xdg);
    else
        return false;
    return n > 0 && (size_t)n < bytes;
}

void
admin_name(const char *endpoint, char *out, size_t bytes)
{
    bool ipc = strncmp(endpoint, "ipc://", 6) == 0;
    const char *last = strrchr(endpoint, ipc ? '/' : ':');
    const char *name = last ? last + 1 : endpoint;
    size_t i, len = strlen(name);

    if (ipc && len > 5 && strcmp(name + len - 5, ".sock") == 0)
        len -= 5;
    if (len > bytes - 1)
        len = bytes - 1;
    for (i = 0; i < len; i++)
        out[i] = isalnum((unsigned char)name[i]) || strchr("-_.", name[i]) ? name[i] : '_';
    out[len] = 0;
}

static bool
is_listener(const struct config *c, const char *endpoint)
{
    size_t i;

    for (i = 0; c->listen[i]; i++) {
        if (dt_endpoint_meets(c->listen[i], endpoint))
            return true;
    }
    return false;
}

static enum dt_status
make_directory(const char *path, struct dt_error *err)
{
    struct stat st;

    if (mkdir(path, 0750) == 0)
        return DT_OK;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return DT_OK;
    return dt_fail(err, DT_E_CANT_CREATE,
                   "admin socket: directory %s cannot be made (%s): name another one with --admin "
                   "ipc://PATH, or --admin none",
                   path, strerror(errno));
}

static enum dt_status
build(const char *dir, const char *name, const char *end, char out[DT_MAX_ENDPOINT + 1],
      struct dt_error *err)
{
    int n = snprintf(out, DT_MAX_ENDPOINT + 1, "ipc://%s/%s%s", dir, name, end);

    return n > 0 && n <= DT_MAX_ENDPOINT
               ? DT_OK
               : dt_fail(err, DT_E_CANT_CREATE, "admin socket: the path in %s is too long", dir);
}

static enum dt_status
default_endpoint(const struct config *c, const char *first, const char *dir,
                 char out[DT_MAX_ENDPOINT + 1], struct dt_error *err)
{
    bool is_private = c->private_dir && c->private_dir[0];
    enum dt_status s;
    char name[64];

    admin_name(first, name, sizeof(name));
    s = build(dir, name, is_private ? ".admin.sock" : ".sock", out, err);
    if (s == DT_OK && is_listener(c, out))
        s = build(dir, name, ".admin.sock", out, err);
    return s == DT_OK ? make_directory(dir, err) : s;
}

enum dt_status
admin_endpoint(const struct config *c, const char *first, char out[DT_MAX_ENDPOINT + 1],
               struct dt_error *err)
{
    char dir[DT_MAX_ENDPOINT];

    out[0] = 0;
    if (c->admin && strcmp(c->admin, "none") == 0)
        return DT_OK;
    if (c->admin && c->admin[0]) {
        snprintf(out, DT_MAX_ENDPOINT + 1, "%s", c->admin);
        return DT_OK;
    }
    if (admin_directory(c, dir, sizeof(dir)))
        return default_endpoint(c, first, dir, out, err);
    dt_log(DT_LOG_WARNING, "no admin socket: XDG_RUNTIME_DIR is not set; psctl needs psd to be "
                           "started with --admin ipc://PATH");
    return DT_OK;
}
