/*
 * pending.c - post to all shards, count the acknowledgements, go on. Runs on shard 0's thread.
 */
#include "psd/serve/pending.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "psd/serve/control.h"

struct pending *
pending_create(pending_fn *done, const struct reply_to *to, uint64_t job_id)
{
    struct pending *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->done = done;
    if (to)
        p->to = *to;
    p->job_id = job_id;
    return p;
}

static void
pending_destroy(struct pending *p)
{
    dt_buffer_deinit(&p->body);
    dt_buffer_deinit(&p->so_far);
    free(p->arg);
    free(p);
}

static void
collect(struct pending *p, const struct mail *m)
{
    if (p->status == DT_OK)
        p->status = m->status;
    if (m->step > p->step)
        p->step = m->step;
    if (m->n_body && dt_buffer_append(&p->body, m->body.data, m->body.len))
        p->n_body += m->n_body;
}

static void
finish(struct shard *shard, struct pending *p, int64_t now, struct outbox *out)
{
    p->done(shard, p, now, out);
    pending_destroy(p);
}

static void
post_copy(struct mail *m, uint32_t to, struct outbox *out)
{
    struct mail *copy = malloc(sizeof(*copy));

    if (!copy)
        abort(); /* shards would differ for ever: die and let the supervisor restart us */
    *copy = *m;
    copy->to = to;
    outbox_add_mail(out, copy);
}

void
post_all(struct shard *shard, struct mail *m, struct pending *p, int64_t now, struct outbox *out)
{
    uint32_t i, n = shard->shared->config.n_shards;

    m->from = 0;
    m->seq = 0;
    if (p) {
        p->seq = m->seq = ++shard->control->next_seq;
        p->n_left = n - 1;
        LL_PREPEND(shard->control->pendings, p);
    }
    for (i = 1; i < n; i++)
        post_copy(m, i, out);
    mail_apply(shard, m, now, out);
    if (p) {
        collect(p, m);
        if (p->n_left == 0) {
            LL_DELETE(shard->control->pendings, p);
            finish(shard, p, now, out);
        }
    }
    mail_destroy(m);
}

void
pending_acknowledge(struct shard *shard, struct mail *ack, int64_t now, struct outbox *out)
{
    struct pending *p;

    for (p = shard->control->pendings; p; p = p->next) {
        if (p->seq == ack->seq)
            break;
    }
    if (!p)
        return;
    collect(p, ack);
    if (--p->n_left > 0)
        return;
    LL_DELETE(shard->control->pendings, p);
    finish(shard, p, now, out);
}

void
pending_destroy_all(struct shard *shard)
{
    struct pending *p, *next;

    for (p = shard->control->pendings; p; p = next) {
        next = p->next;
        pending_destroy(p);
    }
    shard->control->pendings = NULL;
}
