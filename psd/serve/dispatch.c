/*
 * dispatch.c - from a received message to its handler. Runs on the shard's thread.
 *
 * Everything a peer can do wrong ends here or in the handler as a reply with a reject status.
 */
#include <string.h>

#include "psd/serve/call.h"
#include "psd/serve/control.h"

enum {
    NEEDS_SESSION = 1,
    SHARD0 = 2, /* job state lives there */
    ADMIN = 4,
    WHILE_STOPPING = 8,
    DATA = 16, /* the handler says what its time is for */
};

struct op_row {
    handler_fn *handler;
    unsigned flags;
    uint32_t max_frames;
};

static const struct op_row ops[] = {
    [DT_OP_HELLO] = {handle_hello, 0, 1},
    [DT_OP_JOIN] = {handle_join, NEEDS_SESSION | SHARD0, 0},
    [DT_OP_LEAVE] = {handle_leave, NEEDS_SESSION | SHARD0 | WHILE_STOPPING, 0},
    [DT_OP_HEARTBEAT] = {handle_heartbeat, NEEDS_SESSION | WHILE_STOPPING, 0},
    [DT_OP_DECLARE] = {handle_declare, NEEDS_SESSION | SHARD0, 1},
    [DT_OP_INIT] = {handle_init, NEEDS_SESSION, DT_MAX_ITEMS},
    [DT_OP_INIT_DONE] = {handle_init_done, NEEDS_SESSION | SHARD0, 0},
    [DT_OP_CLOCK] = {handle_clock, NEEDS_SESSION | SHARD0, 0},
    [DT_OP_WAIT_STEP] = {handle_wait_step, NEEDS_SESSION | SHARD0, 0},
    [DT_OP_SET] = {handle_set, NEEDS_SESSION | SHARD0, 0},
    [DT_OP_STATS] = {handle_stats, NEEDS_SESSION | SHARD0 | WHILE_STOPPING, 0},
    [DT_OP_GOODBYE] = {handle_goodbye, NEEDS_SESSION | WHILE_STOPPING, 0},
    [DT_OP_PUSH] = {handle_push, NEEDS_SESSION | DATA, DT_MAX_ITEMS},
    [DT_OP_PULL] = {handle_pull, NEEDS_SESSION | DATA, 0},
    [DT_OP_PUSHPULL] = {handle_pushpull, NEEDS_SESSION | DATA, DT_MAX_ITEMS},
    [DT_OP_ADMIN_STATUS] = {handle_admin_status, ADMIN | SHARD0 | WHILE_STOPPING, 0},
    [DT_OP_ADMIN_KICK] = {handle_admin_kick, ADMIN | SHARD0, 0},
    [DT_OP_ADMIN_SHUTDOWN] = {handle_admin_shutdown, ADMIN | SHARD0 | WHILE_STOPPING, 0},
    [DT_OP_ADMIN_SET] = {handle_admin_set, ADMIN | SHARD0, 0},
    [DT_OP_ADMIN_PLACEMENT] = {handle_admin_placement, ADMIN | SHARD0 | WHILE_STOPPING, 0},
};

static const struct op_row *
find_op(unsigned op)
{
    if (op >= sizeof(ops) / sizeof(ops[0]) || !ops[op].handler)
        return NULL;
    return &ops[op];
}

static void
refuse_garbage(struct call *c, enum dt_status status, const char *text)
{
    static struct dt_log_limit limit = DT_LOG_LIMIT(5, 10000);

    dt_log_limited(&limit, DT_LOG_WARNING,
                   "refused a message of %zu header bytes and %u frames: %s", c->req->header.bytes,
                   c->req->n_frames, text);
    reply_status(c->out, &c->to, status, text, 0);
}

static void
renew_lease(struct call *c)
{
    struct session *s = c->session;

    s->seen_ms = shard_running_ms(c->shard);
    if (s->rank != DT_NO_RANK)
        atomic_store_explicit(&s->view->job->shared->last_seen_ms[s->rank], s->seen_ms,
                              memory_order_relaxed);
}

/* A session, the one that the message names, on the connection of its HELLO. */
static bool
find_session(struct call *c)
{
    struct session *s = session_find(c->shard, c->req->peer_class, &c->req->route);

    if (!s || s->id != c->head.session) {
        reply_status(c->out, &c->to, DT_R_HELLO_REQUIRED,
                     "no session on this connection: say HELLO", 0);
        return false;
    }
    c->session = s;
    renew_lease(c);
    return true;
}

static bool
is_allowed(struct call *c, const struct op_row *row)
{
    if (((row->flags & ADMIN) != 0) != (c->req->peer_class == PEER_ADMIN)) {
        refuse_garbage(c, DT_R_DENIED, "not allowed on this connection");
        return false;
    }
    if ((row->flags & SHARD0) && c->shard->index != 0) {
        refuse_garbage(c, DT_R_WRONG_SHARD, "this request goes to shard 0");
        return false;
    }
    if (c->req->overflow || c->req->n_frames > row->max_frames) {
        refuse_garbage(c, DT_R_MALFORMED, "more frames than this request may have");
        return false;
    }
    if (c->shard->stopping && !(row->flags & WHILE_STOPPING)) {
        reply_status(c->out, &c->to, DT_R_GOING_DOWN, "psd is shutting down", 0);
        return false;
    }
    return true;
}

static uint64_t
payload_bytes(const struct request *req)
{
    uint64_t bytes = 0;
    uint32_t i;

    for (i = 0; i < req->n_frames; i++)
        bytes += req->frames[i].bytes;
    return bytes;
}

static void
handle(struct call *c, const struct op_row *row)
{
    if (!is_allowed(c, row) || ((row->flags & NEEDS_SESSION) && !find_session(c)))
        return;
    if (!(row->flags & DATA))
        stages_enter(&c->shard->stages, STAGE_OTHER);
    row->handler(c);
}

void
shard_dispatch(struct shard *shard, const struct request *req, int64_t now, struct outbox *out)
{
    struct call c;
    const struct op_row *row;
    enum dt_status status;

    memset(&c, 0, offsetof(struct call, head));
    c.shard = shard;
    c.req = req;
    c.session = NULL;
    c.payload_bytes = payload_bytes(req);
    c.now = now;
    c.out = out;
    stages_enter(&shard->stages, STAGE_DECODE);
    stages_received(&shard->stages, req->header.bytes + c.payload_bytes);
    status = dt_head_decode(&c.head, req->header.p, req->header.bytes);
    c.to = (struct reply_to){.peer_class = req->peer_class,
                             .route = req->route,
                             .op = c.head.op & ~(unsigned)DT_REPLY_BIT,
                             .request = c.head.request,
                             .session = c.head.session};
    if (status != DT_OK) {
        refuse_garbage(&c, status, dt_status_text(status));
        return;
    }
    row = find_op(c.head.op);
    if (!row) {
        refuse_garbage(&c, DT_R_UNSUPPORTED, "this psd does not know that operation");
        return;
    }
    handle(&c, row);
}

struct control_job *
call_job(const struct call *c)
{
    return control_find(c->shard, c->session->view->id);
}

bool
call_require_open(struct call *c)
{
    const struct job *job = c->session->view->job;

    if (job->state == JOB_FAILED)
        reply_status(c->out, &c->to, DT_R_JOB_FAILED, job->reason, view_step(c->session->view));
    else if (job->state == JOB_COMPLETE)
        reply_status(c->out, &c->to, DT_R_JOB_COMPLETE,
                     "the job is complete and read-only: use --fresh or another --job",
                     view_step(c->session->view));
    return job->state == JOB_OPEN;
}

struct slice *
call_find_slice(const struct call *c, const struct dt_item *item)
{
    const struct view *v = c->session->view;

    if (view_is_racy(v) && c->shard->index != shard_of_rank(c->shard, c->session->rank))
        return NULL;
    return job_find_slice(v->job, item->variable, item->slice);
}

bool
call_require_present(struct call *c, const struct control_job *job)
{
    if (!call_require_worker(c))
        return false;
    if (control_is_turned_away(job, c->session->rank)) {
        reply_status(c->out, &c->to, DT_R_MISMATCH, "this worker's declarations differed", 0);
        return false;
    }
    if (job->workers[c->session->rank].state == WORKER_LEFT) {
        reply_status(c->out, &c->to, DT_R_LEFT, "this worker has left", view_step(job->view));
        return false;
    }
    return true;
}

bool
call_require_worker(struct call *c)
{
    if (c->session->rank != DT_NO_RANK)
        return true;
    reply_status(c->out, &c->to, DT_R_DENIED, "a reader may only pull", 0);
    return false;
}
