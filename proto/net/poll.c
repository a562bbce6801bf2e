/*
 * poll.c - waiting for routers, dealers and plain descriptors together.
 *
 * One system call when there is nothing to be received yet; zmq_poll makes two and one more for each socket, and here
 * a system call costs more than the protocol around a small message. Never polls for output: a ROUTER is writable as
 * soon as any peer has room. Each item is used by the calling thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <zmq.h>

#include "proto/net/socket.h"

#define FEW 32

static struct dt_socket *
socket_of(const struct dt_poll_item *item)
{
    if (item->router)
        return &item->router->socket;
    return item->dealer ? &item->dealer->socket : NULL;
}

/* Asks libzmq, which takes what is in the mailbox: afterwards a new command makes the descriptor readable. */
static bool
has_message(struct dt_socket *s)
{
    size_t size = sizeof(int);
    int events = 0;

    if (!s->unread)
        return false;
    s->unread = zmq_getsockopt(s->zmq, ZMQ_EVENTS, &events, &size) != 0 || (events & ZMQ_POLLIN);
    return s->unread;
}

/* Whether one of them need not be waited for. */
static bool
fill(struct pollfd *list, struct dt_poll_item *items, unsigned n)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < n; i++) {
        struct dt_socket *s = socket_of(&items[i]);

        list[i] = (struct pollfd){.fd = s ? s->fd : items[i].fd, .events = POLLIN};
        items[i].ready = s && has_message(s);
        any = any || items[i].ready;
    }
    return any;
}

static void
take(struct dt_poll_item *item, short revents)
{
    struct dt_socket *s = socket_of(item);

    if (revents == 0)
        return;
    item->ready = true;
    if (s)
        s->unread = true;
}

enum dt_status
dt_poll(struct dt_poll_item *items, unsigned n, int timeout_ms)
{
    struct pollfd few[FEW];
    struct pollfd *list = n <= FEW ? few : malloc(n * sizeof(*list));
    unsigned i;
    int rc, error;

    if (!list)
        return DT_E_INTERNAL;
    rc = poll(list, n, fill(list, items, n) ? 0 : timeout_ms);
    error = errno;
    for (i = 0; i < n && rc > 0; i++)
        take(&items[i], list[i].revents);
    if (list != few)
        free(list);
    return rc >= 0 || error == EINTR ? DT_OK : DT_E_INTERNAL;
}
