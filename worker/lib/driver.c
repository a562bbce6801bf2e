/*
 * driver.c - the token, the loop, the background thread.
 *
 * Invariants: only the thread that set `taken` uses sockets or polls; the lock is released during the
 * poll only. Whoever releases the token with driver_pass wakes a waiter, else the background thread
 * where it has work earlier than it would wake by itself.
 */
#include "worker/lib/driver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "worker/lib/answer.h"
#include "worker/lib/handle.h"
#include "worker/lib/timer.h"

#define MESSAGES_A_TURN 64 /* from one connection, before the others have their turn */
#define FULL_RETRY_MS 5
#define LOOK_MS 500                  /* the background thread, at what others have left lying */
#define BACKGROUND_BYTES (256 << 10) /* of payload under way */

static bool
init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    bool ok;

    if (pthread_condattr_init(&attr))
        return false;
    ok = !pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) && !pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return ok;
}

bool
driver_init(struct driver *d)
{
    d->due_ms = d->background_until_ms = 0;
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return d->wake_fd >= 0 && !pthread_mutex_init(&d->lock, NULL) && init_monotonic(&d->waiters) &&
           init_monotonic(&d->background);
}

void
driver_deinit(struct driver *d)
{
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    d->wake_fd = -1;
    free(d->items);
    d->items = NULL;
    pthread_cond_destroy(&d->background);
    pthread_cond_destroy(&d->waiters);
    pthread_mutex_destroy(&d->lock);
}

static void
wait_until(pthread_cond_t *cond, struct driver *d, int64_t deadline_ms)
{
    struct timespec ts;

    if (deadline_ms == DT_FOREVER) {
        pthread_cond_wait(cond, &d->lock);
        return;
    }
    ts.tv_sec = (time_t)(deadline_ms / 1000);
    ts.tv_nsec = (long)(deadline_ms % 1000) * 1000000L;
    pthread_cond_timedwait(cond, &d->lock, &ts);
}

static void
write_wake(const struct driver *d)
{
    uint64_t one = 1;

    if (write(d->wake_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full: readable anyway */
}

void
driver_news(struct driver *d)
{
    d->news = true;
    pthread_cond_broadcast(&d->waiters);
}

static void
add_item(struct driver *d, struct dt_dealer *dealer, int fd)
{
    struct dt_poll_item *bigger;

    if (d->n_items == d->items_cap) {
        bigger = realloc(d->items, (d->items_cap + 64) * sizeof(*bigger));
        if (!bigger)
            return; /* it is served a turn later */
        d->items = bigger;
        d->items_cap += 64;
    }
    d->items[d->n_items++] = (struct dt_poll_item){NULL, dealer, fd, false};
}

static void
collect_items(struct dtw_client *client)
{
    struct driver *d = &client->driver;
    uint32_t t, s;

    d->n_items = 0;
    add_item(d, NULL, d->wake_fd);
    if (client->stop_fd >= 0 && !client->stop_seen)
        add_item(d, NULL, client->stop_fd);
    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            struct connection *c = client->tasks[t].shards[s];

            if (c && c->dealer)
                add_item(d, c->dealer, -1);
        }
    }
}

/* Ends early with news: whoever waits for it is not to pay for looking whether there is more. */
static bool
receive(struct connection *c, int64_t now)
{
    const struct driver *d = &c->task->client->driver;
    struct dt_message message;
    int i;

    for (i = 0; i < MESSAGES_A_TURN && c->dealer && !d->news; i++) {
        if (dt_dealer_recv(c->dealer, &message) != DT_OK)
            break;
        answer_take(c, &message, now);
        dt_message_deinit(&message);
    }
    return i > 0;
}

static void
drain(struct dtw_client *client)
{
    struct driver *d = &client->driver;
    uint64_t count;
    unsigned i;

    for (i = 0; i < d->n_items; i++) {
        if (!d->items[i].ready || d->items[i].dealer)
            continue;
        if (d->items[i].fd == d->wake_fd && read(d->wake_fd, &count, sizeof(count)) < 0)
            continue;
        if (d->items[i].fd == client->stop_fd)
            client->stop_seen = true;
    }
    if (client->stop_seen || atomic_load(&client->interrupted))
        pthread_cond_broadcast(&d->waiters);
}

static bool
receive_all(struct dtw_client *client)
{
    int64_t now = dt_now_ms();
    bool any = false;
    uint32_t t, s;

    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            struct connection *c = client->tasks[t].shards[s];

            if (c && c->dealer && dt_dealer_may_have(c->dealer))
                any = receive(c, now) || any;
        }
    }
    return any;
}

static bool
flush_all(struct dtw_client *client)
{
    bool full = false;
    uint32_t t, s;

    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < DT_MAX_SHARDS; s++) {
            struct connection *c = client->tasks[t].shards[s];

            if (!c || !c->dealer)
                continue;
            connection_flush(c);
            full = full || c->full;
        }
    }
    return full;
}

/* Small requests are sent by whoever makes them, and their answers can lie until somebody waits: waking the background
 * thread for them costs more than they do. What does not fit into the window, or has to be copied, goes on meanwhile. */
static bool
is_worth_background(const struct dtw_client *client)
{
    uint32_t t, s;

    for (t = 0; t < client->n_tasks; t++) {
        for (s = 0; s < client->tasks[t].n_shards; s++) {
            const struct connection *c = client->tasks[t].shards[s];

            if (c && (c->unsent || c->bytes_in_flight >= BACKGROUND_BYTES))
                return true;
        }
    }
    return timer_is_busy(client);
}

void
driver_wake(struct dtw_client *client, bool alone)
{
    struct driver *d = &client->driver;

    if (d->taken) {
        write_wake(d);
        return;
    }
    if (!alone || d->n_waiting > 0)
        return;
    flush_all(client); /* the token is free and the lock is held: nobody else uses the sockets */
    if (!is_worth_background(client))
        return;
    d->due_ms = 0;
    pthread_cond_signal(&d->background);
}

/* What is due is done and sent; d->due_ms: when this has to be looked at again. */
static void
work_off(struct dtw_client *client, int64_t now)
{
    struct driver *d = &client->driver;
    int64_t settle_ms;

    d->news = false;
    d->due_ms = timer_tick(client, now);
    if (flush_all(client) && now + FULL_RETRY_MS < d->due_ms)
        d->due_ms = now + FULL_RETRY_MS;
    settle_ms = handle_settle(client, now);
    if (settle_ms < d->due_ms)
        d->due_ms = settle_ms;
}

/* One turn of the loop. Lock and token held; the lock is dropped for the poll, which is left out when there is
 * something to receive without it. */
static void
turn(struct dtw_client *client, int64_t deadline_ms)
{
    struct driver *d = &client->driver;
    int64_t now = dt_now_ms();

    work_off(client, now);
    if (!receive_all(client)) {
        if (d->due_ms < deadline_ms)
            deadline_ms = d->due_ms;
        if (d->news || d->stop)
            deadline_ms = now;
        collect_items(client);
        pthread_mutex_unlock(&d->lock);
        dt_poll(d->items, d->n_items, dt_poll_timeout(now, deadline_ms));
        pthread_mutex_lock(&d->lock);
        drain(client);
        receive_all(client);
    }
    handle_settle(client, dt_now_ms());
}

static bool
is_busy(const struct dtw_client *client)
{
    const struct dtw_handle *h;

    for (h = client->handles; h; h = h->next) {
        if (!h->done)
            return true;
    }
    return timer_is_busy(client);
}

/* The token is free: wake who should take it. */
static void
pass(struct dtw_client *client)
{
    struct driver *d = &client->driver;

    if (d->taken)
        return;
    if (d->n_waiting > 0)
        pthread_cond_signal(&d->waiters);
    else if (is_worth_background(client) || d->due_ms < d->background_until_ms)
        pthread_cond_signal(&d->background);
}

static bool
is_interrupted(struct dtw_client *client)
{
    return client->stop_seen || atomic_load(&client->interrupted);
}

static void
look_at_stop(struct dtw_client *client)
{
    struct pollfd p = {client->stop_fd, POLLIN, 0};

    client->stop_seen = client->stop_fd >= 0 && poll(&p, 1, 0) > 0;
}

enum wait_end
driver_wait(struct dtw_client *client, driver_over_fn *over, const void *arg, int64_t deadline_ms,
            bool interruptible)
{
    struct driver *d = &client->driver;
    enum wait_end end = WAIT_OVER;
    bool mine = false, looked = false;

    look_at_stop(client);
    d->n_waiting++;
    if (d->background_drives)
        write_wake(d);
    while (!over(client, arg)) {
        if (interruptible && is_interrupted(client)) {
            end = WAIT_INTERRUPTED;
            break;
        }
        if (looked && dt_now_ms() >= deadline_ms) {
            end = WAIT_TIMEOUT;
            break;
        }
        looked = true;
        if (!mine && d->taken) {
            wait_until(&d->waiters, d, deadline_ms);
            continue;
        }
        mine = d->taken = true;
        turn(client, deadline_ms);
    }
    d->n_waiting--;
    if (mine)
        d->taken = false;
    pass(client);
    return end;
}

static void
background_turn(struct dtw_client *client)
{
    struct driver *d = &client->driver;

    d->taken = d->background_drives = true;
    turn(client, is_busy(client) ? DT_FOREVER : 0); /* idle: sleep on the condition instead */
    d->taken = d->background_drives = false;
    if (d->n_waiting > 0)
        pthread_cond_signal(&d->waiters);
}

static void *
background(void *arg)
{
    struct dtw_client *client = arg;
    struct driver *d = &client->driver;

    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        int64_t now = dt_now_ms();

        if (!d->taken && d->n_waiting == 0 && (is_busy(client) || now >= d->due_ms)) {
            background_turn(client);
            continue;
        }
        /* With a driver at work: it does what time brings; look again later. Without: a request that did not wake
         * this thread and that nobody waits for is not to lie until the next heartbeat, its connection may be cut. */
        d->background_until_ms = d->due_ms < now + LOOK_MS ? d->due_ms : now + LOOK_MS;
        if (d->taken || d->n_waiting > 0)
            d->background_until_ms = now + client->params.lease_ms / 8 + 1;
        wait_until(&d->background, d, d->background_until_ms);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

bool
driver_start(struct dtw_client *client)
{
    struct driver *d = &client->driver;
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    d->started = !pthread_create(&d->thread, NULL, background, client);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return d->started;
}

void
driver_stop(struct driver *d)
{
    if (!d->started)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    write_wake(d);
    pthread_cond_signal(&d->background);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    d->started = false;
}
