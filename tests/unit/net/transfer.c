/*
 * transfer.c - messages between a router and dealers over ipc and tcp: by reference, metered,
 * refused, too long.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "proto/base/clock.h"
#include "tests/unit/net/net.h"

TestSuite(transfer, .timeout = 240);

static void
wait_for_zero(atomic_size_t *counter)
{
    int64_t until = dt_deadline(dt_now_ms(), PATIENCE_MS);

    while (atomic_load(counter) != 0) {
        cr_assert_lt(dt_now_ms(), until, "%zu are not released", atomic_load(counter));
        dt_sleep_ms(5);
    }
}

static void
count_release(void *arg)
{
    atomic_fetch_sub((atomic_size_t *)arg, 1);
}

/* A request with two lent frames, an answer with a block, an empty frame and a copied one. */
static void
exchange(struct net *n, const char *endpoint)
{
    static float gradient[DT_SLICE_ELEMENTS];
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router = net_router(n, endpoint, bound);
    struct dt_dealer *dealer = net_dealer(n, bound);
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *block = dt_block_create(pool, DT_SLICE_BYTES);
    struct dt_meter *meter = dt_meter_create(-1);
    atomic_size_t lent = 2;
    struct dt_out_frame out[3] = {
        {gradient, sizeof(gradient), count_release, &lent},
        {"copied", 6, NULL, NULL},
        {gradient, 4, count_release, &lent},
    };
    struct dt_payload payload[3] = {
        {block, NULL, DT_SLICE_BYTES}, {NULL, NULL, 0}, {NULL, "body", 4}};
    struct dt_message m;
    struct dt_route route;

    gradient[DT_SLICE_ELEMENTS - 1] = 0.5f;
    memset(block->data, 7, DT_SLICE_BYTES);
    cr_assert_eq(dt_dealer_send(dealer, "head", 4, out, 3), DT_SENT);
    net_router_recv(router, &m);
    cr_assert(net_is_text(m.header, "head"));
    cr_assert(!m.overflow && m.n_frames == 3 && m.route.len > 0);
    cr_assert(m.frames[0].bytes == sizeof(gradient) &&
              !memcmp(m.frames[0].p, gradient, sizeof(gradient)));
    cr_assert(net_is_text(m.frames[1], "copied"));
    cr_assert_eq(m.frames[2].bytes, 4);
    route = m.route;
    dt_message_deinit(&m);
    wait_for_zero(&lent);

    dt_meter_add(meter, DT_SLICE_BYTES + 4);
    cr_assert_eq(dt_router_send(router, &route, "reply", 5, payload, 3, meter), DT_SENT);
    net_dealer_recv(dealer, &m);
    cr_assert(net_is_text(m.header, "reply"));
    cr_assert(m.n_frames == 3 && m.route.len == 0);
    cr_assert(m.frames[0].bytes == DT_SLICE_BYTES &&
              !memcmp(m.frames[0].p, block->data, DT_SLICE_BYTES));
    cr_assert_eq(m.frames[1].bytes, 0);
    cr_assert(net_is_text(m.frames[2], "body"));
    dt_message_deinit(&m);
    wait_for_zero(&meter->bytes);
    wait_for_zero(&meter->messages);
    cr_assert(dt_block_is_exclusive(block), "the reference is given back");

    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    dt_meter_unref(meter);
    dt_block_unref(block);
    dt_pool_destroy(pool);
}

Test(transfer, ipc)
{
    struct net n;

    net_init(&n);
    exchange(&n, net_ipc(&n, "s"));
    net_deinit(&n);
}

Test(transfer, tcp)
{
    struct net n;

    net_init(&n);
    exchange(&n, "tcp://127.0.0.1:0");
    exchange(&n, "tcp://127.0.0.1:*");
    net_deinit(&n);
}

Test(transfer, tcp_by_name)
{
    struct net n;

    net_init(&n);
    exchange(&n, "tcp://localhost:0");
    net_deinit(&n);
}

Test(transfer, tcp_over_ipv6)
{
    struct dt_router_options options = {.window = 8};
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *probe;
    enum dt_status status;
    struct net n;

    net_init(&n);
    probe = dt_router_create(n.context, &options, NULL);
    status = dt_router_bind(probe, "tcp://[::1]:0", 0, bound, NULL);
    dt_router_destroy(probe);
    if (status == DT_OK)
        exchange(&n, "tcp://[::1]:0");
    else
        cr_log_info("skipped: this machine has no IPv6");
    net_deinit(&n);
}

/* Bound to all addresses; reached by the port that was given. */
Test(transfer, tcp_on_all_addresses)
{
    char bound[DT_MAX_ENDPOINT + 1], near[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct net n;

    net_init(&n);
    router = net_router(&n, "tcp://*:0", bound);
    cr_assert_eq(dt_endpoint_check(bound, NULL), DT_OK, "%s", bound);
    cr_assert_eq(dt_endpoint_peer("tcp://localhost:1", strrchr(bound, ':') + 1, near, sizeof(near)),
                 DT_OK);
    dealer = net_dealer(&n, near);
    dt_dealer_send(dealer, "x", 1, NULL, 0);
    net_router_recv(router, &m);
    dt_message_deinit(&m);
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    net_deinit(&n);
}

Test(transfer, a_server_that_comes_later_is_waited_for)
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_dealer *dealer;
    struct dt_router *router;
    struct dt_message m;
    struct net n;

    net_init(&n);
    dealer = net_dealer(&n, net_ipc(&n, "late"));
    cr_assert_eq(dt_dealer_recv(dealer, &m), DT_E_TIMEOUT);
    cr_assert_eq(dt_dealer_send(dealer, "early", 5, NULL, 0), DT_SENT);
    dt_sleep_ms(150);
    router = net_router(&n, net_ipc(&n, "late"), bound);
    net_router_recv(router, &m);
    cr_assert(net_is_text(m.header, "early"));
    cr_assert_eq(m.n_frames, 0);
    dt_message_deinit(&m);
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    net_deinit(&n);
}

Test(transfer, an_unknown_route_is_gone_and_everything_given_back)
{
    struct dt_route nobody = {.len = 5, .id = {0, 1, 2, 3, 4}}, none = {.len = 0};
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *block = dt_block_create(pool, 4096);
    struct dt_payload payload = {block, NULL, 4096};
    struct dt_meter *meter = dt_meter_create(-1);
    struct dt_router *router;
    struct net n;

    net_init(&n);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    dt_meter_add(meter, 4096);
    cr_assert_eq(dt_router_send(router, &nobody, "x", 1, &payload, 1, meter), DT_SENT_GONE);
    cr_assert_eq(atomic_load(&meter->bytes), 0);
    cr_assert_eq(atomic_load(&meter->messages), 0);
    cr_assert(dt_block_is_exclusive(block));
    cr_assert_eq(dt_router_send(router, &nobody, "x", 1, NULL, 0, NULL), DT_SENT_GONE);
    cr_assert_eq(dt_router_send(router, &none, "x", 1, NULL, 0, NULL), DT_SENT_GONE);
    dt_router_destroy(router);
    dt_meter_unref(meter);
    dt_block_unref(block);
    dt_pool_destroy(pool);
    net_deinit(&n);
}

/* The peer does not read: the router says so, and no message begins with a frame of a refused one. */
Test(transfer, a_full_peer_is_told_and_keeps_whole_messages)
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *block = dt_block_create(pool, DT_SLICE_BYTES);
    struct dt_payload payload[2] = {{block, NULL, DT_SLICE_BYTES}, {NULL, "tail", 4}};
    struct dt_meter *meter = dt_meter_create(-1);
    struct dt_router *router;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct dt_route route;
    unsigned sent = 0, got = 0, n_full = 0;
    struct net n;

    net_init(&n);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    dealer = net_dealer(&n, bound);
    cr_assert_eq(dt_dealer_send(dealer, "hello", 5, NULL, 0), DT_SENT);
    net_router_recv(router, &m);
    route = m.route;
    dt_message_deinit(&m);
    while (n_full < 50 && sent < 5000) {
        enum dt_sent result;

        dt_meter_add(meter, DT_SLICE_BYTES + 4);
        result = dt_router_send(router, &route, "reply", 5, payload, 2, meter);
        cr_assert_neq(result, DT_SENT_GONE);
        if (result == DT_SENT)
            sent++;
        else
            n_full++;
    }
    cr_assert_eq(n_full, 50, "%u messages of 1 MiB were taken", sent);
    while (got < sent) {
        net_dealer_recv(dealer, &m);
        cr_assert(net_is_text(m.header, "reply") && m.n_frames == 2);
        cr_assert(net_is_text(m.frames[1], "tail"));
        dt_message_deinit(&m);
        got++;
    }
    wait_for_zero(&meter->bytes);
    wait_for_zero(&meter->messages);
    cr_assert(dt_block_is_exclusive(block));
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    dt_meter_unref(meter);
    dt_block_unref(block);
    dt_pool_destroy(pool);
    net_deinit(&n);
}

Test(transfer, a_message_in_flight_is_released_when_its_peer_goes)
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *block = dt_block_create(pool, DT_SLICE_BYTES);
    struct dt_payload payload[1] = {{block, NULL, DT_SLICE_BYTES}};
    struct dt_meter *meter = dt_meter_create(-1);
    struct dt_router *router;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct dt_route route;
    unsigned i;
    struct net n;

    net_init(&n);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    dealer = net_dealer(&n, bound);
    cr_assert_eq(dt_dealer_send(dealer, "hello", 5, NULL, 0), DT_SENT);
    net_router_recv(router, &m);
    route = m.route;
    dt_message_deinit(&m);
    for (i = 0; i < 20; i++) {
        dt_meter_add(meter, DT_SLICE_BYTES);
        cr_assert_eq(dt_router_send(router, &route, "reply", 5, payload, 1, meter), DT_SENT);
    }
    dt_dealer_destroy(dealer, 0);
    cr_assert(net_is_quiet(router, 50)); /* lets the router see it */
    dt_router_destroy(router);
    dt_context_destroy(n.context);
    cr_assert_eq(atomic_load(&meter->bytes), 0);
    cr_assert_eq(atomic_load(&meter->messages), 0);
    cr_assert(dt_block_is_exclusive(block));
    n.context = NULL;
    dt_meter_unref(meter);
    dt_block_unref(block);
    dt_pool_destroy(pool);
    net_deinit(&n);
}

Test(transfer, lent_frames_come_back_when_nobody_takes_them)
{
    static char data[1000];
    atomic_size_t lent = 0;
    struct dt_dealer *dealer;
    struct net n;
    unsigned i, n_full = 0;

    net_init(&n);
    dealer = net_dealer(&n, net_ipc(&n, "nobody"));
    for (i = 0; i < 3000; i++) {
        struct dt_out_frame f[2] = {{data, sizeof(data), count_release, &lent},
                                    {data, 0, count_release, &lent}};

        atomic_fetch_add(&lent, 2);
        n_full += dt_dealer_send(dealer, "x", 1, f, 2) == DT_SENT_FULL;
    }
    cr_assert_gt(n_full, 0, "there is a limit");
    cr_assert_eq(atomic_load(&lent), 2 * (3000 - n_full), "refused ones came back at once");
    dt_dealer_destroy(dealer, 0);
    wait_for_zero(&lent);
    net_deinit(&n);
}

/* A peer of another make: more frames than a message may have, then one that is legal. */
Test(transfer, too_many_frames_are_read_to_their_end)
{
    void *zmq = zmq_ctx_new(), *peer = zmq_socket(zmq, ZMQ_DEALER);
    int zero = 0;
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    struct dt_message m;
    unsigned i;
    struct net n;

    net_init(&n);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    zmq_setsockopt(peer, ZMQ_LINGER, &zero, sizeof(zero));
    cr_assert_eq(zmq_connect(peer, bound), 0);
    for (i = 0; i < 200; i++)
        zmq_send(peer, "f", 1, ZMQ_SNDMORE);
    zmq_send(peer, "f", 1, 0);
    for (i = 0; i < DT_MAX_ITEMS; i++)
        zmq_send(peer, "g", 1, ZMQ_SNDMORE);
    zmq_send(peer, "g", 1, 0);
    zmq_send(peer, "", 0, 0);
    net_router_recv(router, &m);
    cr_assert(m.overflow && m.n_frames <= DT_MAX_ITEMS);
    dt_message_deinit(&m);
    net_router_recv(router, &m);
    cr_assert(!m.overflow && m.n_frames == DT_MAX_ITEMS);
    cr_assert(net_is_text(m.frames[DT_MAX_ITEMS - 1], "g"));
    dt_message_deinit(&m);
    net_router_recv(router, &m);
    cr_assert(!m.overflow && m.n_frames == 0 && m.header.bytes == 0);
    dt_message_deinit(&m);
    zmq_close(peer);
    zmq_ctx_term(zmq);
    dt_router_destroy(router);
    net_deinit(&n);
}

Test(transfer, a_routing_id_that_is_too_long_is_flagged)
{
    void *zmq = zmq_ctx_new(), *peer = zmq_socket(zmq, ZMQ_DEALER);
    int zero = 0;
    char bound[DT_MAX_ENDPOINT + 1], id[100];
    struct dt_router *router;
    struct dt_message m;
    struct net n;

    net_init(&n);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    memset(id, 'i', sizeof(id));
    zmq_setsockopt(peer, ZMQ_LINGER, &zero, sizeof(zero));
    zmq_setsockopt(peer, ZMQ_ROUTING_ID, id, sizeof(id));
    cr_assert_eq(zmq_connect(peer, bound), 0);
    zmq_send(peer, "x", 1, 0);
    net_router_recv(router, &m);
    cr_assert(m.overflow && m.route.len == 0 && m.n_frames == 0);
    dt_message_deinit(&m);
    zmq_close(peer);
    zmq_ctx_term(zmq);
    dt_router_destroy(router);
    net_deinit(&n);
}

Test(transfer, poll_tells_which_are_ready)
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct dt_poll_item items[3];
    int fds[2];
    struct net n;

    net_init(&n);
    cr_assert_eq(pipe(fds), 0);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    dealer = net_dealer(&n, bound);
    memset(items, 0, sizeof(items));
    items[0].router = router;
    items[1].dealer = dealer;
    items[2].fd = fds[0];
    cr_assert_eq(dt_poll(items, 3, 0), DT_OK);
    cr_assert(!items[0].ready && !items[1].ready && !items[2].ready);
    cr_assert_eq(write(fds[1], "x", 1), 1);
    cr_assert_eq(dt_poll(items, 3, PATIENCE_MS), DT_OK);
    cr_assert(items[2].ready);
    cr_assert_eq(dt_router_recv(router, &m),
                 DT_E_TIMEOUT); /* ready or not: a socket may be in vain */
    dt_dealer_send(dealer, "x", 1, NULL, 0);
    net_router_recv(router, &m);
    dt_message_deinit(&m);
    items[2].fd = -1;
    while (dt_poll(items, 3, 50) == DT_OK && (items[0].ready || items[1].ready)) {
        cr_assert_eq(dt_router_recv(router, &m), DT_E_TIMEOUT);
        cr_assert_eq(dt_dealer_recv(dealer, &m), DT_E_TIMEOUT);
    }
    cr_assert(!items[2].ready);
    close(fds[0]);
    close(fds[1]);
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    net_deinit(&n);
}

/* libzmq's descriptor is an edge, and a send may take it: the answer is in the socket, the descriptor tells nothing. */
Test(transfer, poll_finds_what_came_before_a_send)
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_poll_item item = {.fd = -1};
    struct dt_router *router;
    struct dt_dealer *dealer;
    struct dt_message m;
    struct net n;
    int i;

    net_init(&n);
    router = net_router(&n, net_ipc(&n, "s"), bound);
    dealer = net_dealer(&n, bound);
    item.dealer = dealer;
    for (i = 0; i < 20; i++) {
        dt_dealer_send(dealer, "ask", 3, NULL, 0);
        net_router_recv(router, &m);
        cr_assert_eq(dt_router_send(router, &m.route, "answer", 6, NULL, 0, NULL), DT_SENT);
        dt_message_deinit(&m);
        dt_sleep_ms(10); /* the answer arrives; longer than libzmq's own rest between two looks */
        dt_dealer_send(dealer, "another", 7, NULL, 0);
        net_router_recv(router, &m);
        dt_message_deinit(&m);
        cr_assert_eq(dt_poll(&item, 1, PATIENCE_MS), DT_OK);
        cr_assert(item.ready, "turn %d: nobody would have woken up", i);
        cr_assert_eq(dt_dealer_recv(dealer, &m), DT_OK);
        dt_message_deinit(&m);
    }
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
    net_deinit(&n);
}

static int
plain_send_buffer(void)
{
    socklen_t len = sizeof(int);
    int bytes = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0);

    cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len), 0);
    close(fd);
    return bytes;
}

/* What both ends of a connection say after it was widened. */
static void
widen_both(struct net *n, const char *endpoint, int bytes[2])
{
    char bound[DT_MAX_ENDPOINT + 1];
    struct dt_router *router = net_router(n, endpoint, bound);
    struct dt_dealer *dealer = net_dealer(n, bound);
    struct dt_message m;

    dt_dealer_send(dealer, "ask", 3, NULL, 0);
    net_router_recv(router, &m);
    bytes[0] = dt_message_widen(&m);
    cr_assert_eq(dt_router_send(router, &m.route, "answer", 6, NULL, 0, NULL), DT_SENT);
    dt_message_deinit(&m);
    net_dealer_recv(dealer, &m);
    bytes[1] = dt_message_widen(&m);
    dt_message_deinit(&m);
    cr_assert_eq(dt_message_widen(&m), 0, "no message, no connection");
    dt_dealer_destroy(dealer, 0);
    dt_router_destroy(router);
}

Test(transfer, unix_sockets_get_a_larger_send_buffer)
{
    struct net n;
    int bytes[2];

    net_init(&n);
    widen_both(&n, net_ipc(&n, "s"), bytes);
    cr_assert_gt(bytes[0], plain_send_buffer());
    cr_assert_eq(bytes[0], bytes[1]);
    widen_both(&n, "tcp://127.0.0.1:*", bytes);
    cr_assert_eq(bytes[0], 0, "tcp's grows by itself, and no longer once it is set");
    cr_assert_eq(bytes[1], 0);
    net_deinit(&n);
}
