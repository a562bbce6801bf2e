/*
 * shard_endpoint.c - the endpoints of the shards, by suffix (ipc) or port (tcp). Any thread.
 */
#include "psd/daemon/shard_endpoint.h"

#include <string.h>

#include "proto/net/endpoint.h"

static enum dt_status
ipc_endpoint(const char *asked, uint32_t shard, char out[DT_MAX_ENDPOINT + 1], struct dt_error *err)
{
    char suffix[16] = "";
    size_t room;

    if (shard > 0)
        snprintf(suffix, sizeof(suffix), ".%u", shard);
    room = DT_IPC_PATH_BYTES - strlen(suffix);
    if (strlen(asked) - strlen("ipc://") > room)
        return dt_fail(err, DT_E_CONFIG,
                       "listen: %s: its socket's path may have %zu bytes: choose a shorter one",
                       asked, room);
    snprintf(out, DT_MAX_ENDPOINT + 1, "%s%s", asked, suffix);
    return DT_OK;
}

static enum dt_status
tcp_endpoint(const struct config *c, const char *asked, unsigned first, uint32_t shard,
             char out[DT_MAX_ENDPOINT + 1], struct dt_error *err)
{
    unsigned port = c->shard_ports == PORTS_CONSECUTIVE && first > 0 ? first + shard : 0;

    if (port > 65535)
        return dt_fail(err, DT_E_CONFIG,
                       "shard_ports: no port %u for shard %u of %s: choose a lower port or "
                       "shard_ports = ephemeral",
                       port, shard, asked);
    snprintf(out, DT_MAX_ENDPOINT + 1, "%.*s:%u", (int)(strrchr(asked, ':') - asked), asked, port);
    return DT_OK;
}

enum dt_status
shard_endpoint(const struct config *c, const char *asked, const char *first, uint32_t shard,
               char out[DT_MAX_ENDPOINT + 1], struct dt_error *err)
{
    struct dt_endpoint e;
    enum dt_status s = dt_endpoint_split(first, &e, err);

    if (s != DT_OK)
        return s;
    if (e.is_ipc)
        return ipc_endpoint(asked, shard, out, err);
    if (shard > 0)
        return tcp_endpoint(c, asked, e.number, shard, out, err);
    snprintf(out, DT_MAX_ENDPOINT + 1, "%s", asked);
    return DT_OK;
}
