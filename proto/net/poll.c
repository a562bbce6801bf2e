/*
 * poll.c - waiting for routers, dealers and plain descriptors together.
 *
 * Never polls for POLLOUT: a ROUTER is writable as soon as any peer has room. Each item is used by the
 * calling thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

#include "proto/net/socket.h"

#define FEW 32

static void
fill(zmq_pollitem_t *to, const struct dt_poll_item *from)
{
    *to = (zmq_pollitem_t){.fd = -1, .events = ZMQ_POLLIN};
    if (from->router)
        to->socket = from->router->socket;
    else if (from->dealer)
        to->socket = from->dealer->socket;
    else
        to->fd = from->fd;
}

enum dt_status
dt_poll(struct dt_poll_item *items, unsigned n, int timeout_ms)
{
    zmq_pollitem_t few[FEW];
    zmq_pollitem_t *list = n <= FEW ? few : malloc(n * sizeof(*list));
    unsigned i;
    int rc, error;

    if (!list)
        return DT_E_INTERNAL;
    for (i = 0; i < n; i++)
        fill(&list[i], &items[i]);
    rc = zmq_poll(list, (int)n, timeout_ms);
    error = errno;
    for (i = 0; i < n; i++)
        items[i].ready = rc > 0 && list[i].revents != 0;
    if (list != few)
        free(list);
    if (rc >= 0 || error == EINTR || error == ETERM)
        return DT_OK;
    return DT_E_INTERNAL;
}
