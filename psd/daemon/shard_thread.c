/*
 * shard_thread.c - the loop of one shard. Runs on that shard's thread (but for init, start, stop,
 * join and deinit).
 *
 * Invariants: a turn handles a bounded number of messages and a bounded time, so that time-outs,
 * mails and the stop request are looked at whatever the peers do; nothing in a turn blocks but the
 * poll; the outbox is empty between turns.
 */
#include "psd/daemon/shard_thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/log.h"

#define TURN_MESSAGES 128 /* of all routers together */
#define TURN_MS 20        /* a turn takes no new message after this */
#define TURN_MAILS 1024   /* mails in a turn */
#define BUSY_MS 2000      /* with traffic within this time the tick runs at SHARD_TICK_MS */
#define MAIL_RETRY_MS 2   /* poll time-out while mails wait for room */
#define STOP_POLL_MS 10   /* poll time-out while acknowledgements are awaited */
#define SUMMARY_MS 1000   /* the summary is renewed at most so often */

static void
clear_event(int fd)
{
    uint64_t count;

    (void)!read(fd, &count, sizeof(count));
}

static void
write_event(int fd)
{
    uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

/* One reply to its router. A refused one goes back to the shard, which may answer with more. */
static void
send_reply(struct shard_thread *t, struct reply *r, int64_t now)
{
    struct dt_payload body = {.data = r->body.data, .bytes = r->body.len};
    struct dt_router *router = t->routers[r->peer_class];
    enum dt_sent sent;

    stages_enter(t->stages, STAGE_REPLY);
    if (!router) {
        reply_destroy(r);
        return;
    }
    if (r->body.len > 0)
        sent = dt_router_send(router, &r->route, r->header.data, r->header.len, &body, 1, r->meter);
    else
        sent = dt_router_send(router, &r->route, r->header.data, r->header.len, r->payload,
                              r->n_payload, r->meter);
    if (sent == DT_SENT) {
        stages_sent(t->stages, r->header.len + r->body.len + r->meter_bytes);
        reply_destroy(r);
    } else {
        shard_undelivered(t->shard, r, sent, now, &t->out);
    }
}

static void
deliver(struct shard_thread *t, int64_t now)
{
    struct reply *r;
    struct mail *m;

    while ((r = outbox_take_reply(&t->out)))
        send_reply(t, r, now);
    while ((m = outbox_take_mail(&t->out)))
        mailbox_post(t->mailboxes, t->index, m);
}

static void
dispatch(struct shard_thread *t, enum peer_class class, struct dt_message *msg, int64_t now)
{
    struct request request = {
        .peer_class = class,
        .route = msg->route,
        .header = msg->header,
        .n_frames = msg->n_frames,
        .frames = msg->frames,
        .overflow = msg->overflow,
    };
    uint64_t n_opened = shard_n_opened(t->shard);

    shard_dispatch(t->shard, &request, now, &t->out);
    if (shard_n_opened(t->shard) != n_opened)
        dt_message_widen(msg);
    deliver(t, now);
}

/* One message of the router, if there is one. */
static bool
receive_one(struct shard_thread *t, unsigned index, int64_t now)
{
    struct dt_message msg;

    stages_message(t->stages);
    if (dt_router_recv(t->items[index].router, &msg) != DT_OK)
        return false;
    dispatch(t, t->classes[index], &msg, now);
    stages_enter(t->stages, STAGE_RECEIVE);
    dt_message_deinit(&msg);
    return true;
}

/* Round-robin over the routers that are readable; another one comes first in each turn. */
static bool
receive(struct shard_thread *t, int64_t start)
{
    unsigned i, n = 0, n_before;
    int64_t now = start;

    do {
        n_before = n;
        for (i = 0; i < t->n_routers; i++) {
            unsigned k = (t->first + i) % t->n_routers;

            if (!t->items[k].ready)
                continue;
            t->items[k].ready = receive_one(t, k, now);
            n += t->items[k].ready;
        }
        now = dt_now_ms();
    } while (n > n_before && n < TURN_MESSAGES && now - start < TURN_MS);
    t->first++;
    return n > 0;
}

static bool
take_mails(struct shard_thread *t, int64_t now)
{
    struct mail *m;
    unsigned n = 0;

    if (t->items[t->n_routers].ready)
        mailbox_clear(t->mailboxes, t->index);
    while (n < TURN_MAILS && (m = mailbox_take(t->mailboxes, t->index))) {
        shard_mail(t->shard, m, now, &t->out);
        deliver(t, now);
        n++;
    }
    if (n == TURN_MAILS)
        write_event(mailbox_fd(t->mailboxes, t->index)); /* there may be more */
    return n > 0;
}

static void
tick(struct shard_thread *t, int64_t now)
{
    t->last_tick_ms = now;
    shard_tick(t->shard, now, &t->out);
    deliver(t, now);
}

/* Whoever took replies has room for more. */
static void
flush(struct shard_thread *t, int64_t now)
{
    clear_event(t->wake_fd);
    shard_flush(t->shard, &t->out);
    deliver(t, now);
}

static void
report(struct shard_thread *t, int64_t now)
{
    struct shard_report *r = t->report;
    enum once_state once = r->watch_once ? shard_once_state(t->shard, now) : ONCE_RUNNING;
    bool shutdown = shard_shutdown_wanted(t->shard);

    if ((int)once != atomic_load(&r->once) || shutdown != atomic_load(&r->shutdown)) {
        atomic_store(&r->once, (int)once);
        atomic_store(&r->shutdown, shutdown);
        write_event(r->fd);
    }
    if (now - t->last_summary_ms < SUMMARY_MS)
        return;
    t->last_summary_ms = now;
    pthread_mutex_lock(&r->lock);
    shard_summary(t->shard, r->summary, sizeof(r->summary));
    pthread_mutex_unlock(&r->lock);
}

static int
turn_timeout(const struct shard_thread *t, int64_t now)
{
    int64_t left = t->last_tick_ms + SHARD_TICK_MS - now;

    if (t->mail_waits)
        return MAIL_RETRY_MS;
    if (t->stop_deadline_ms)
        return STOP_POLL_MS;
    if (now >= t->busy_until_ms)
        return t->idle_ms;
    return left > 0 ? (int)left : 0;
}

static void
begin_stop(struct shard_thread *t, int64_t now)
{
    t->stop_deadline_ms = now + t->stop_wait_ms;
    shard_stop(t->shard, now, &t->out);
    deliver(t, now);
}

static bool
is_done(const struct shard_thread *t, int64_t now)
{
    return t->stop_deadline_ms &&
           (now >= t->stop_deadline_ms || shard_n_unacknowledged(t->shard) == 0);
}

/* Returns the time: that of the stages, where they have any. */
static int64_t
enter(struct shard_thread *t, enum stage part)
{
    uint64_t ns = stages_turn(t->stages, part);

    return ns > 0 ? (int64_t)(ns / 1000000) : dt_now_ms();
}

static enum dt_status
turn(struct shard_thread *t)
{
    int64_t now = enter(t, STAGE_IDLE);
    bool busy;

    if (dt_poll(t->items, t->n_items, turn_timeout(t, now)) != DT_OK)
        return DT_E_INTERNAL;
    now = enter(t, STAGE_OTHER);
    if (t->items[t->n_routers + 1].ready)
        flush(t, now);
    busy = take_mails(t, now);
    busy |= receive(t, enter(t, STAGE_RECEIVE));
    now = enter(t, STAGE_OTHER);
    if (busy)
        t->busy_until_ms = now + BUSY_MS;
    if (now - t->last_tick_ms >= SHARD_TICK_MS)
        tick(t, now);
    t->mail_waits = mailbox_retry(t->mailboxes, t->index);
    if (t->report)
        report(t, now);
    if (atomic_load(&t->stop) && !t->stop_deadline_ms)
        begin_stop(t, now);
    atomic_fetch_add_explicit(&t->turns, 1, memory_order_relaxed);
    return DT_OK;
}

static void *
run(void *arg)
{
    struct shard_thread *t = arg;

    while (!is_done(t, dt_now_ms())) {
        if (turn(t) != DT_OK) {
            dt_log(DT_LOG_ERR, "shard %u: poll failed: it serves no longer", t->index);
            break;
        }
    }
    return NULL;
}

bool
shard_thread_init(struct shard_thread *t, struct serve_shared *shared, uint32_t index)
{
    t->index = index;
    outbox_init(&t->out);
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->wake_fd < 0)
        return false;
    t->shard = shard_create(shared, index, t->wake_fd);
    t->stages = t->shard ? shard_stages(t->shard) : NULL;
    return t->shard != NULL;
}

static void
build_poll_set(struct shard_thread *t)
{
    unsigned class;

    for (class = 0; class < N_PEER_CLASSES; class ++) {
        if (!t->routers[class])
            continue;
        t->classes[t->n_routers] = (enum peer_class) class;
        t->items[t->n_routers++].router = t->routers[class];
    }
    t->items[t->n_routers].fd = mailbox_fd(t->mailboxes, t->index);
    t->items[t->n_routers + 1].fd = t->wake_fd;
    t->n_items = t->n_routers + 2;
}

enum dt_status
shard_thread_start(struct shard_thread *t, struct dt_error *err)
{
    char name[16];
    int e;

    build_poll_set(t);
    e = pthread_create(&t->thread, NULL, run, t);
    if (e != 0)
        return dt_fail(err, DT_E_INTERNAL, "shard %u: its thread cannot be started: %s", t->index,
                       strerror(e));
    t->started = true;
    snprintf(name, sizeof(name), "shard %u", t->index);
    pthread_setname_np(t->thread, name);
    return DT_OK;
}

void
shard_thread_stop(struct shard_thread *t, int64_t wait_ms)
{
    t->stop_wait_ms = wait_ms; /* read by the thread after it has seen `stop` */
    atomic_store(&t->stop, true);
    write_event(t->wake_fd);
}

void
shard_thread_join(struct shard_thread *t)
{
    if (t->started)
        pthread_join(t->thread, NULL);
    t->started = false;
}

void
shard_thread_destroy_shard(struct shard_thread *t)
{
    outbox_deinit(&t->out);
    shard_destroy(t->shard);
    t->shard = NULL;
}

void
shard_thread_deinit(struct shard_thread *t)
{
    if (t->wake_fd >= 0)
        close(t->wake_fd);
    t->wake_fd = -1;
}
