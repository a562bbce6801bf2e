/*
 * net.h - what the tests of sockets share: a directory of their own, a context, waiting with a bound.
 */
#ifndef TEST_NET_H
#define TEST_NET_H

#include "proto/net/dealer.h"
#include "proto/net/router.h"

#define PATIENCE_MS 10000

struct net {
    char dir[64];
    struct dt_context *context;
};

void net_init(struct net *n);
/* Fails the test when the directory is not empty. */
void net_deinit(struct net *n);
/* "ipc://DIR/NAME"; in one of two static buffers. */
const char *net_ipc(const struct net *n, const char *name);

struct dt_router *net_router(struct net *n, const char *endpoint, char bound[DT_MAX_ENDPOINT + 1]);
struct dt_dealer *net_dealer(struct net *n, const char *endpoint);

/* The next message, or a failed test after PATIENCE_MS. */
void net_router_recv(struct dt_router *router, struct dt_message *m);
void net_dealer_recv(struct dt_dealer *dealer, struct dt_message *m);
/* Is nothing there within `ms`? */
bool net_is_quiet(struct dt_router *router, int ms);
bool net_is_text(struct dt_span span, const char *text);

#endif
