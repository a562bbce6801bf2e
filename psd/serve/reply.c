/*
 * reply.c - replies as the daemon sends them. Shard's thread; the meter alone is shared.
 *
 * When memory is too short for a reply it is not sent: the client repeats after its own deadline.
 */
#include "psd/serve/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reply *
reply_create(const struct reply_to *to)
{
    struct reply *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->peer_class = to->peer_class;
    r->route = to->route;
    r->header.limit = DT_MAX_HEADER_BYTES;
    return r;
}

void
reply_destroy(struct reply *r)
{
    uint32_t i;

    if (!r)
        return;
    for (i = 0; i < r->n_payload; i++)
        dt_block_unref(r->payload[i].block);
    free(r->payload);
    dt_buffer_deinit(&r->header);
    dt_buffer_deinit(&r->body);
    dt_meter_unref(r->meter);
    free(r);
}

bool
reply_reserve(struct reply *r, uint32_t n)
{
    r->payload = calloc(n + 1, sizeof(*r->payload));
    return r->payload != NULL;
}

void
reply_add_block(struct reply *r, struct dt_block *block)
{
    struct dt_payload *p = &r->payload[r->n_payload++];

    if (!block)
        return;
    p->block = dt_block_ref(block);
    p->data = block->data;
    p->bytes = block->bytes;
    r->meter_bytes += p->bytes;
}

void
reply_status(struct outbox *out, const struct reply_to *to, enum dt_status status, const char *text,
             uint64_t step)
{
    struct reply *r = reply_create(to);

    if (!r)
        return;
    dt_head_reply(&r->header, to->op, to->request, to->session, status, text ? text : "", step, 0);
    outbox_add_reply(out, r);
}

void
reply_reject(struct outbox *out, const struct reply_to *to, enum dt_status status, const char *fmt,
             ...)
{
    char text[DT_MAX_TEXT + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    reply_status(out, to, status, text, 0);
}

void
reply_step(struct outbox *out, const struct reply_to *to, uint64_t job_step, uint64_t step)
{
    struct reply *r = reply_create(to);

    if (!r)
        return;
    dt_step_reply_encode(&r->header, (enum dt_op)to->op, to->request, to->session, job_step, step);
    outbox_add_reply(out, r);
}

void
reply_waiting(struct outbox *out, const struct reply_to *to, enum dt_status status,
              uint64_t job_step, const struct dt_waiting *w)
{
    struct reply *r = reply_create(to);

    if (!r)
        return;
    r->keep = status == DT_PARKED;
    dt_waiting_encode(&r->header, (enum dt_op)to->op, to->request, to->session, status, job_step,
                      w);
    outbox_add_reply(out, r);
}

void
reply_body(struct outbox *out, const struct reply_to *to, struct dt_buffer *body, uint64_t step)
{
    struct reply *r = reply_create(to);

    if (!r) {
        dt_buffer_deinit(body);
        return;
    }
    dt_head_reply(&r->header, to->op, to->request, to->session, DT_OK, "", step, 0);
    r->body = *body;
    memset(body, 0, sizeof(*body));
    outbox_add_reply(out, r);
}
