/*
 * config_check.c - whether settings make sense together, before anything is bound. Main thread.
 */
#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"
#include "proto/base/plural.h"
#include "proto/net/context.h"
#include "proto/net/endpoint.h"
#include "proto/wire/limits.h"
#include "psd/daemon/config.h"
#include "psd/daemon/shard_endpoint.h"

static enum dt_status
check_listen(const struct config *c, const char *endpoint, struct dt_error *err)
{
    char last[DT_MAX_ENDPOINT + 1]; /* shards want names of their own: is there room for them? */

    if (dt_endpoint_check(endpoint, err) != DT_OK) {
        dt_fail_prefix(err, "listen");
        if (err)
            err->code = DT_E_CONFIG;
        return DT_E_CONFIG;
    }
    if (!dt_endpoint_is_local(endpoint) && !c->insecure)
        return dt_fail(err, DT_E_CONFIG,
                       "listen: %s can be reached from other machines, and without keys anyone who "
                       "reaches it is let in: use a loopback address (tcp://127.0.0.1:PORT) or "
                       "ipc://PATH, or accept that with --insecure",
                       endpoint);
    return shard_endpoint(c, endpoint, endpoint, (uint32_t)c->shards - 1, last, err);
}

/* Is `other` where a shard of `endpoint` listens? Returns the first such shard, or c->shards. */
static uint32_t
find_meeting(const struct config *c, const char *endpoint, const char *other)
{
    uint32_t k, n = (uint32_t)c->shards;
    char at[DT_MAX_ENDPOINT + 1];

    for (k = 0; k < n; k++) {
        if (shard_endpoint(c, endpoint, endpoint, k, at, NULL) == DT_OK &&
            dt_endpoint_meets(at, other))
            return k;
    }
    return n;
}

/* Two shards after the first cannot meet where none meets a first one: suffixes and ports are counted alike. */
static enum dt_status
check_meeting(const struct config *c, const char *endpoint, const char *key, const char *other,
              struct dt_error *err)
{
    uint32_t shard = find_meeting(c, endpoint, other);
    const char *what = strncmp(other, "ipc://", 6) ? "port" : "path";

    if (shard == c->shards)
        return DT_OK;
    if (!strcmp(endpoint, other) && !strcmp(key, "listen"))
        return dt_fail(err, DT_E_CONFIG, "listen: %s is there twice", other);
    return dt_fail(err, DT_E_CONFIG,
                   "%s: %s collides with shard %u of %s: choose another %s for one of them", key,
                   other, shard, endpoint, what);
}

static enum dt_status
check_listen_apart(const struct config *c, struct dt_error *err)
{
    enum dt_status s = DT_OK;
    size_t i, k;

    for (i = 0; c->listen[i] && s == DT_OK; i++) {
        for (k = 0; c->listen[k] && s == DT_OK; k++) {
            if (k != i)
                s = check_meeting(c, c->listen[k], "listen", c->listen[i], err);
        }
    }
    return s;
}

static enum dt_status
check_admin(const struct config *c, struct dt_error *err)
{
    enum dt_status s = DT_OK;
    struct dt_endpoint e;
    size_t i;

    if (!c->admin || !strcmp(c->admin, "none"))
        return DT_OK;
    if (dt_endpoint_split(c->admin, &e, NULL) != DT_OK || !e.is_ipc ||
        strlen(e.path) > DT_IPC_PATH_BYTES)
        return dt_fail(err, DT_E_CONFIG,
                       "admin: %s must be an ipc://PATH, of at most %d bytes, or none", c->admin,
                       DT_IPC_PATH_BYTES);
    for (i = 0; c->listen[i] && s == DT_OK; i++)
        s = check_meeting(c, c->listen[i], "admin", c->admin, err);
    return s;
}

static enum dt_status
check_advertise(const struct config *c, struct dt_error *err)
{
    uint64_t n = 0, port;

    if (!c->advertise || !c->advertise[0])
        return DT_OK;
    for (; c->advertise[n]; n++) {
        if (!dt_parse_u64(c->advertise[n], &port) || port < 1 || port > 65535)
            return dt_fail(err, DT_E_CONFIG, "advertise: %s is no port (1 to 65535)",
                           c->advertise[n]);
    }
    if (n + 1 != c->shards)
        return dt_fail(err, DT_E_CONFIG,
                       "advertise: has %llu port%s, but %llu shard%s need %llu (one for each shard "
                       "after the first)",
                       (unsigned long long)n, dt_plural(n), (unsigned long long)c->shards,
                       dt_plural(c->shards), (unsigned long long)(c->shards - 1));
    return DT_OK;
}

enum dt_status
config_check(const struct config *c, struct dt_error *err)
{
    enum dt_status s = DT_OK;
    size_t i;

    for (i = 0; c->listen[i] && s == DT_OK; i++)
        s = check_listen(c, c->listen[i], err);
    if (s == DT_OK)
        s = check_listen_apart(c, err);
    if (s == DT_OK)
        s = check_admin(c, err);
    return s == DT_OK ? check_advertise(c, err) : s;
}
