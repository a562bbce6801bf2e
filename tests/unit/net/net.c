/*
 * net.c - what the tests of sockets share.
 */
#include "tests/unit/net/net.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"

void
net_init(struct net *n)
{
    struct dt_error err;

    strcpy(n->dir, "/tmp/psd-net-XXXXXX");
    cr_assert_not_null(mkdtemp(n->dir));
    n->context = dt_context_create(true, 1, &err);
    cr_assert_not_null(n->context, "%s", err.text);
}

void
net_deinit(struct net *n)
{
    dt_context_destroy(n->context);
    cr_assert_eq(rmdir(n->dir), 0, "%s: files were left behind", n->dir);
}

const char *
net_ipc(const struct net *n, const char *name)
{
    static char text[2][DT_MAX_ENDPOINT + 1];
    static unsigned turn;
    char *out = text[turn++ % 2];

    snprintf(out, sizeof(text[0]), "ipc://%s/%s", n->dir, name);
    return out;
}

struct dt_router *
net_router(struct net *n, const char *endpoint, char bound[DT_MAX_ENDPOINT + 1])
{
    struct dt_router_options options = {.window = 8, .local = true};
    struct dt_error err = {DT_OK, ""};
    struct dt_router *r = dt_router_create(n->context, &options, &err);

    cr_assert_not_null(r, "%s", err.text);
    cr_assert_eq(dt_router_bind(r, endpoint, 0, bound, &err), DT_OK, "%s", err.text);
    return r;
}

struct dt_dealer *
net_dealer(struct net *n, const char *endpoint)
{
    struct dt_error err = {DT_OK, ""};
    struct dt_dealer *d = dt_dealer_create(n->context, endpoint, 8, &err);

    cr_assert_not_null(d, "%s", err.text);
    return d;
}

void
net_router_recv(struct dt_router *router, struct dt_message *m)
{
    int64_t until = dt_deadline(dt_now_ms(), PATIENCE_MS);

    while (dt_router_recv(router, m) != DT_OK) {
        struct dt_poll_item item = {.router = router, .fd = -1};

        cr_assert_lt(dt_now_ms(), until, "no message came");
        cr_assert_eq(dt_poll(&item, 1, 100), DT_OK);
    }
}

void
net_dealer_recv(struct dt_dealer *dealer, struct dt_message *m)
{
    int64_t until = dt_deadline(dt_now_ms(), PATIENCE_MS);

    while (dt_dealer_recv(dealer, m) != DT_OK) {
        struct dt_poll_item item = {.dealer = dealer, .fd = -1};

        cr_assert_lt(dt_now_ms(), until, "no message came");
        cr_assert_eq(dt_poll(&item, 1, 100), DT_OK);
    }
}

bool
net_is_quiet(struct dt_router *router, int ms)
{
    int64_t until = dt_deadline(dt_now_ms(), ms);
    struct dt_message m;

    while (dt_now_ms() < until) {
        struct dt_poll_item item = {.router = router, .fd = -1};

        dt_poll(&item, 1, 20);
        if (dt_router_recv(router, &m) == DT_OK) {
            dt_message_deinit(&m);
            return false;
        }
    }
    return true;
}

bool
net_is_text(struct dt_span span, const char *text)
{
    return span.bytes == strlen(text) && !memcmp(span.p, text, span.bytes);
}
