/*
 * bind.c - binding a router to tcp and ipc endpoints. By the router's thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "proto/net/endpoint.h"
#include "proto/net/ipc.h"
#include "proto/net/socket.h"

static enum dt_status
fail_bind(const char *endpoint, int error, struct dt_error *err)
{
    switch (error) {
    case EADDRINUSE:
        return dt_fail(err, DT_E_ADDRESS_IN_USE,
                       "%s is in use: stop the other program or choose another port", endpoint);
    case EACCES:
    case EPERM:
        return dt_fail(err, DT_E_DENIED, "not allowed to bind %s: %s", endpoint,
                       zmq_strerror(error));
    case ENODEV:
    case EADDRNOTAVAIL:
        return dt_fail(err, DT_E_CANT_CREATE, "cannot bind %s: the address is not this machine's",
                       endpoint);
    default:
        return dt_fail(err, DT_E_CANT_CREATE, "cannot bind %s: %s", endpoint, zmq_strerror(error));
    }
}

static enum dt_status
bound_endpoint(void *socket, const char *endpoint, char bound[DT_MAX_ENDPOINT + 1],
               struct dt_error *err)
{
    char text[2 * DT_MAX_ENDPOINT];
    size_t size = sizeof(text);

    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text, &size) != 0 || size > DT_MAX_ENDPOINT + 1)
        return dt_fail(err, DT_E_INTERNAL, "cannot learn where %s was bound", endpoint);
    memcpy(bound, text, size);
    return DT_OK;
}

/* libzmq binds to numbers only: the host is resolved here. "*" stays: all addresses. */
static enum dt_status
numeric(const struct dt_endpoint *e, char *out, size_t out_bytes, bool *v6, struct dt_error *err)
{
    char host[NI_MAXHOST];
    const struct addrinfo *a;
    struct addrinfo *list;
    enum dt_status status;

    *v6 = true;
    if (!strcmp(e->host, "*")) {
        snprintf(out, out_bytes, "tcp://*:%s", e->port);
        return DT_OK;
    }
    status = dt_endpoint_lookup(e, &list, err);
    if (status != DT_OK)
        return status;
    a = dt_endpoint_choose(list);
    *v6 = a->ai_family != AF_INET;
    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
        status = dt_fail(err, DT_E_RESOLVE, "host %s has no address", e->host);
    else
        snprintf(out, out_bytes, *v6 ? "tcp://[%s]:%s" : "tcp://%s:%s", host, e->port);
    freeaddrinfo(list);
    return status;
}

static enum dt_status
bind_tcp(struct dt_router *r, const struct dt_endpoint *e, const char *endpoint,
         struct dt_error *err)
{
    char address[NI_MAXHOST + 32];
    bool v6;
    enum dt_status status = numeric(e, address, sizeof(address), &v6, err);
    int rc, error;

    if (status != DT_OK)
        return status;
    dt_socket_set(r->socket.zmq, ZMQ_IPV6, v6);
    rc = zmq_bind(r->socket.zmq, address);
    error = errno;
    dt_socket_set(r->socket.zmq, ZMQ_IPV6, 1);
    return rc == 0 ? DT_OK : fail_bind(endpoint, error, err);
}

static enum dt_status
bind_ipc(struct dt_router *r, const struct dt_endpoint *e, const char *endpoint, unsigned mode,
         struct dt_error *err)
{
    int fd, rc, error;
    struct dt_ipc_lock *lock = dt_ipc_listen(e->path, mode, &fd, err);

    if (!lock)
        return err ? err->code : DT_E_CANT_CREATE;
    dt_socket_set(r->socket.zmq, ZMQ_USE_FD, fd);
    rc = zmq_bind(r->socket.zmq, endpoint);
    error = errno;
    dt_socket_set(r->socket.zmq, ZMQ_USE_FD, -1);
    if (rc == 0) {
        r->locks = dt_ipc_push(r->locks, lock);
        return DT_OK;
    }
    close(fd);
    dt_ipc_release(lock);
    return fail_bind(endpoint, error, err);
}

enum dt_status
dt_router_bind(struct dt_router *router, const char *endpoint, unsigned mode,
               char bound[DT_MAX_ENDPOINT + 1], struct dt_error *err)
{
    struct dt_error own = {DT_OK, ""};
    struct dt_endpoint e;
    enum dt_status status;

    if (!err)
        err = &own;
    status = dt_endpoint_split(endpoint, &e, err);
    if (status == DT_OK && e.is_ipc)
        status = bind_ipc(router, &e, endpoint, mode, err);
    else if (status == DT_OK)
        status = bind_tcp(router, &e, endpoint, err);
    return status == DT_OK ? bound_endpoint(router->socket.zmq, endpoint, bound, err) : status;
}
