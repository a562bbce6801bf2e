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

/* Of a tcp endpoint that was checked; "*" is 0. */
static uint64_t
port_of(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    uint64_t port = 0;

    return colon && dt_parse_u64(colon + 1, &port) ? port : 0;
}

static bool
is_ipc(const char *endpoint)
{
    return !strncmp(endpoint, "ipc://", 6);
}

static bool
has_free_port(const char *endpoint)
{
    return !is_ipc(endpoint) && port_of(endpoint) == 0;
}

/* The shards after the first need names of their own: PATH.1, ..., or the ports that follow. */
static enum dt_status
check_room(const struct config *c, const char *endpoint, struct dt_error *err)
{
    unsigned long long last = c->shards - 1, port = port_of(endpoint);
    char suffix[32] = "";

    if (last > 0)
        snprintf(suffix, sizeof(suffix), ".%llu", last);
    if (is_ipc(endpoint) && strlen(endpoint + 6) + strlen(suffix) > DT_IPC_PATH_BYTES)
        return dt_fail(err, DT_E_CONFIG,
                       "listen: %s: its socket's path may have %zu bytes: choose a shorter one",
                       endpoint, DT_IPC_PATH_BYTES - strlen(suffix));
    if (!is_ipc(endpoint) && c->shard_ports == PORTS_CONSECUTIVE && port > 0 && port + last > 65535)
        return dt_fail(err, DT_E_CONFIG,
                       "shard_ports: no port %llu for shard %llu of %s: choose a lower port or "
                       "shard_ports = ephemeral",
                       port + last, last, endpoint);
    return DT_OK;
}

static enum dt_status
check_listen(const struct config *c, const char *endpoint, struct dt_error *err)
{
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
    return check_room(c, endpoint, err);
}

static enum dt_status
check_repeated(const struct config *c, size_t i, struct dt_error *err)
{
    size_t k;

    for (k = 0; k < i; k++) {
        if (!strcmp(c->listen[k], c->listen[i]) && !has_free_port(c->listen[i]))
            return dt_fail(err, DT_E_CONFIG, "listen: %s is there twice", c->listen[i]);
    }
    return DT_OK;
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
    size_t i;

    for (i = 0; c->listen[i]; i++) {
        enum dt_status s = check_listen(c, c->listen[i], err);

        if (s == DT_OK)
            s = check_repeated(c, i, err);
        if (s != DT_OK)
            return s;
    }
    if (c->admin && strcmp(c->admin, "none") != 0 &&
        (!is_ipc(c->admin) || strlen(c->admin + 6) > DT_IPC_PATH_BYTES))
        return dt_fail(err, DT_E_CONFIG,
                       "admin: %s must be an ipc://PATH, of at most %d bytes, or none", c->admin,
                       DT_IPC_PATH_BYTES);
    return check_advertise(c, err);
}
