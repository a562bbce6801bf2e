/*
 * endpoint.c - endpoints as users type them: tcp://HOST:PORT, tcp://[V6]:PORT, ipc://PATH.
 * Any thread; resolving may block for as long as the resolver does.
 */
#include "proto/net/endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "proto/net/context.h"

static bool
parse_port(const char *text, unsigned *port)
{
    size_t i, n = strlen(text);

    *port = 0;
    if (n == 0 || n > 5)
        return false;
    for (i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *port = *port * 10 + (unsigned)(text[i] - '0');
    }
    return *port <= 65535;
}

static bool
is_plain_text(const char *text)
{
    const unsigned char *p;

    for (p = (const unsigned char *)text; *p; p++) {
        if (*p <= 0x20 || *p == 0x7f)
            return false;
    }
    return true;
}

static bool
split_host(struct dt_endpoint *out, const char *host, size_t n)
{
    bool v6 = n > 2 && host[0] == '[' && host[n - 1] == ']';

    if (v6) {
        host++;
        n -= 2;
    }
    if (n == 0 || n >= sizeof(out->host) || (!v6 && memchr(host, ':', n)) || memchr(host, '[', n) ||
        memchr(host, ']', n) || memchr(host, '/', n) || memchr(host, ';', n))
        return false;
    memcpy(out->host, host, n);
    out->host[n] = '\0';
    return true;
}

static bool
split_tcp(struct dt_endpoint *out, const char *rest)
{
    const char *colon = strrchr(rest, ':');

    if (!colon || (strcmp(colon + 1, "*") != 0 && !parse_port(colon + 1, &out->number)))
        return false;
    memcpy(out->port, colon + 1, strlen(colon + 1) + 1);
    return split_host(out, rest, (size_t)(colon - rest));
}

enum dt_status
dt_endpoint_split(const char *endpoint, struct dt_endpoint *out, struct dt_error *err)
{
    memset(out, 0, sizeof(*out));
    if (strlen(endpoint) > DT_MAX_ENDPOINT)
        return dt_fail(err, DT_E_RESOLVE, "endpoint is longer than %d bytes", DT_MAX_ENDPOINT);
    if (!strncmp(endpoint, "ipc://", 6)) {
        out->is_ipc = true;
        memcpy(out->path, endpoint + 6, strlen(endpoint + 6) + 1);
        if (out->path[0] && out->path[0] != '@' && out->path[0] != '*')
            return DT_OK;
    } else if (!strncmp(endpoint, "tcp://", 6) && is_plain_text(endpoint) &&
               split_tcp(out, endpoint + 6)) {
        return DT_OK;
    }
    return dt_fail(err, DT_E_RESOLVE, "%s is no endpoint: write tcp://HOST:PORT or ipc://PATH",
                   endpoint);
}

enum dt_status
dt_endpoint_check(const char *endpoint, struct dt_error *err)
{
    struct dt_endpoint e;

    return dt_endpoint_split(endpoint, &e, err);
}

enum dt_status
dt_endpoint_lookup(const struct dt_endpoint *e, struct addrinfo **list, struct dt_error *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc = getaddrinfo(e->host, NULL, &hints, list);

    if (rc == 0)
        return DT_OK;
    return dt_fail(err, DT_E_RESOLVE, "host %s does not resolve: %s", e->host, gai_strerror(rc));
}

const struct addrinfo *
dt_endpoint_choose(const struct addrinfo *list)
{
    const struct addrinfo *a;

    for (a = list; a; a = a->ai_next) {
        if (a->ai_family == AF_INET)
            return a;
    }
    return list;
}

enum dt_status
dt_endpoint_resolve(const char *endpoint, struct dt_error *err)
{
    struct addrinfo *list;
    struct dt_endpoint e;
    enum dt_status status = dt_endpoint_split(endpoint, &e, err);

    if (status != DT_OK || e.is_ipc || !strcmp(e.host, "*"))
        return status;
    status = dt_endpoint_lookup(&e, &list, err);
    if (status == DT_OK)
        freeaddrinfo(list);
    return status;
}

static bool
is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;

        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (a->sa_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
    }
    return false;
}

bool
dt_endpoint_is_local(const char *endpoint)
{
    struct addrinfo *list, *a;
    struct dt_endpoint e;
    bool local = true;

    if (dt_endpoint_split(endpoint, &e, NULL) != DT_OK)
        return false;
    if (e.is_ipc)
        return true;
    if (!strcmp(e.host, "*") || dt_endpoint_lookup(&e, &list, NULL) != DT_OK)
        return false;
    for (a = list; a; a = a->ai_next)
        local = local && is_loopback(a->ai_addr);
    freeaddrinfo(list);
    return local;
}

/* An ipc suffix: empty, or a dot and letters or digits. */
static bool
is_suffix(const char *peer)
{
    const unsigned char *p = (const unsigned char *)peer;

    if (*p == '\0')
        return true;
    if (*p++ != '.' || *p == '\0')
        return false;
    while (isalnum(*p))
        p++;
    return *p == '\0';
}

enum dt_status
dt_endpoint_peer(const char *endpoint, const char *peer, char *out, unsigned out_bytes)
{
    struct dt_endpoint e;
    unsigned port;
    int n;

    if (dt_endpoint_split(endpoint, &e, NULL) != DT_OK)
        return DT_E_RESOLVE;
    if (e.is_ipc) {
        if (!is_suffix(peer))
            return DT_E_PROTOCOL;
        n = snprintf(out, out_bytes, "%s%s", endpoint, peer);
    } else {
        if (!parse_port(peer, &port) || port == 0)
            return DT_E_PROTOCOL;
        n = snprintf(out, out_bytes, "%.*s:%s", (int)(strrchr(endpoint, ':') - endpoint), endpoint,
                     peer);
    }
    return n >= 0 && (unsigned)n < out_bytes ? DT_OK : DT_E_PROTOCOL;
}
