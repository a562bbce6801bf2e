/*
 * session.c - sessions of one shard. Runs on the shard's thread; only the meter is shared.
 */
#include "psd/serve/session.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "psd/serve/parked.h"
#include "psd/serve/untaken.h"

#define MAX_SESSIONS 65536

static struct session_key
make_key(enum peer_class peer_class, const struct dt_route *route)
{
    struct session_key key;

    memset(&key, 0, sizeof(key));
    key.peer_class = (uint8_t)peer_class;
    key.len = route->len;
    memcpy(key.id, route->id, route->len);
    return key;
}

struct session *
session_find(struct shard *shard, enum peer_class peer_class, const struct dt_route *route)
{
    struct session_key key = make_key(peer_class, route);
    struct session *s;

    HASH_FIND(hh, shard->sessions, &key, sizeof(key), s);
    return s;
}

static void
end_older(struct shard *shard, const struct reply_to *to, struct view *view, uint32_t rank)
{
    struct session *old = session_find(shard, to->peer_class, &to->route);

    if (old)
        session_end(shard, old);
    if (rank != DT_NO_RANK && view->ranks[rank].session)
        session_end(shard, view->ranks[rank].session);
}

struct session *
session_create(struct shard *shard, const struct reply_to *to, struct view *view, uint32_t rank,
               uint64_t life)
{
    struct session_key key = make_key(to->peer_class, &to->route);
    struct session *s;

    end_older(shard, to, view, rank);
    if (shard->n_sessions >= MAX_SESSIONS)
        return NULL;
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->meter = untaken_resume(shard, &key);
    if (!s->meter)
        s->meter = dt_meter_create(shard->wake_fd);
    if (!s->meter) {
        free(s);
        return NULL;
    }
    s->key = key;
    s->id = ++shard->next_session;
    s->view = view;
    s->rank = rank;
    s->life = life;
    s->window = rank == DT_NO_RANK ? shard_window(shard) : view->ranks[rank].window;
    s->seen_ms = shard_running_ms(shard);
    s->queue_end = &s->queue;
    HASH_ADD(hh, shard->sessions, key, sizeof(s->key), s);
    DL_APPEND(view->sessions, s);
    shard->n_sessions++;
    shard->n_opened++;
    if (rank != DT_NO_RANK)
        view->ranks[rank].session = s;
    return s;
}

/* Only those with a queue are looked at when room was made. */
static void
list_queued(struct shard *shard, struct session *s, bool had_queue)
{
    if (s->queue && !had_queue)
        DL_APPEND2(shard->queued, s, prev_queued, next_queued);
    else if (!s->queue && had_queue)
        DL_DELETE2(shard->queued, s, prev_queued, next_queued);
}

static void
drop_queue(struct shard *shard, struct session *s)
{
    bool had_queue = s->queue != NULL;

    while (s->queue) {
        struct reply *r = s->queue;

        s->queue = r->next;
        reply_destroy(r);
    }
    s->queue_end = &s->queue;
    s->n_ordinary = s->n_woken_items = 0;
    s->ordinary_bytes = 0;
    list_queued(shard, s, had_queue);
}

void
session_end(struct shard *shard, struct session *s)
{
    while (s->parked)
        parked_destroy(s->parked);
    drop_queue(shard, s);
    untaken_keep(shard, &s->key, s->meter);
    if (s->rank != DT_NO_RANK && s->view->ranks[s->rank].session == s)
        s->view->ranks[s->rank].session = NULL;
    DL_DELETE(s->view->sessions, s);
    HASH_DEL(shard->sessions, s);
    shard->n_sessions--;
    free(s);
}

struct reply_to
session_reply_to(const struct session *s, unsigned op, uint64_t request)
{
    struct reply_to to;

    memset(&to, 0, sizeof(to));
    to.peer_class = (enum peer_class)s->key.peer_class;
    to.route.len = s->key.len;
    memcpy(to.route.id, s->key.id, s->key.len);
    to.op = op;
    to.request = request;
    to.session = s->id;
    return to;
}

/* One message is always allowed when nothing is under way: a slice may be larger than the window. */
static bool
has_room(const struct session *s, const struct reply *r)
{
    size_t bytes = atomic_load(&s->meter->bytes);
    size_t messages = atomic_load(&s->meter->messages);

    if (messages == 0)
        return true;
    return messages < s->window.messages && bytes + r->meter_bytes <= s->window.bytes;
}

static void
let_go(struct session *s, struct reply *r, struct outbox *out)
{
    if (r->n_payload) {
        if (!r->meter)
            r->meter = dt_meter_ref(s->meter);
        dt_meter_add(s->meter, r->meter_bytes);
    }
    outbox_add_reply(out, r);
}

/* A reply enters the queue, or leaves it. */
static void
count(struct session *s, const struct reply *r, bool enters)
{
    if (r->keep) {
        s->n_woken_items += enters ? r->n_payload : 0 - r->n_payload;
    } else {
        s->n_ordinary += enters ? 1 : UINT32_MAX;
        s->ordinary_bytes += enters ? r->meter_bytes : 0 - r->meter_bytes;
    }
}

static void
flush_while_room(struct session *s, struct outbox *out)
{
    while (s->queue && has_room(s, s->queue)) {
        struct reply *r = s->queue;

        s->queue = r->next;
        if (!s->queue)
            s->queue_end = &s->queue;
        count(s, r, false);
        let_go(s, r, out);
    }
}

static void
flush(struct session *s, struct outbox *out)
{
    flush_while_room(s, out);
    if (!s->queue)
        return;
    atomic_store(&s->meter->waiting, true);
    flush_while_room(s, out); /* room that came before the flag was seen */
}

void
session_flush(struct shard *shard, struct session *s, struct outbox *out)
{
    bool had_queue = s->queue != NULL;

    flush(s, out);
    list_queued(shard, s, had_queue);
}

/* A peer that keeps to its window never has so much to be queued. */
static bool
is_over_window(const struct session *s, const struct reply *r)
{
    return s->n_ordinary >= s->window.messages ||
           (s->n_ordinary > 0 && s->ordinary_bytes + r->meter_bytes > s->window.bytes);
}

bool
session_send(struct shard *shard, struct session *s, struct reply *r, bool woken,
             struct outbox *out)
{
    static struct dt_log_limit limit = DT_LOG_LIMIT(5, 10000);

    bool had_queue = s->queue != NULL;

    r->keep = woken;
    if (!woken && is_over_window(s, r)) {
        dt_log_limited(&limit, DT_LOG_WARNING,
                       "job %s rank %u is over its window of %u requests and %llu bytes: session "
                       "ended",
                       s->view->job->name, s->rank, s->window.messages,
                       (unsigned long long)s->window.bytes);
        reply_destroy(r);
        session_end(shard, s);
        return false;
    }
    r->next = NULL;
    *s->queue_end = r;
    s->queue_end = &r->next;
    count(s, r, true);
    flush(s, out);
    list_queued(shard, s, had_queue);
    return true;
}

void
session_requeue(struct shard *shard, struct session *s, struct reply *r)
{
    bool had_queue = s->queue != NULL;

    r->next = s->queue;
    s->queue = r;
    if (!r->next)
        s->queue_end = &r->next;
    count(s, r, true);
    list_queued(shard, s, had_queue);
}
