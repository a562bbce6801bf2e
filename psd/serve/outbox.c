/*
 * outbox.c - the two queues that a dispatch fills: replies and mails. Plain lists; shard's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "psd/serve/mail.h"
#include "psd/serve/reply.h"

void
outbox_init(struct outbox *out)
{
    memset(out, 0, sizeof(*out));
    out->replies_end = &out->replies;
    out->mails_end = &out->mails;
}

void
outbox_deinit(struct outbox *out)
{
    struct reply *r;
    struct mail *m;

    while ((r = outbox_take_reply(out)) != NULL)
        reply_destroy(r);
    while ((m = outbox_take_mail(out)) != NULL)
        mail_destroy(m);
}

struct reply *
outbox_take_reply(struct outbox *out)
{
    struct reply *r = out->replies;

    if (!r)
        return NULL;
    out->replies = r->next;
    if (!out->replies)
        out->replies_end = &out->replies;
    r->next = NULL;
    return r;
}

struct mail *
outbox_take_mail(struct outbox *out)
{
    struct mail *m = out->mails;

    if (!m)
        return NULL;
    out->mails = m->next;
    if (!out->mails)
        out->mails_end = &out->mails;
    m->next = NULL;
    return m;
}

void
outbox_add_reply(struct outbox *out, struct reply *r)
{
    r->next = NULL;
    *out->replies_end = r;
    out->replies_end = &r->next;
}

void
outbox_add_mail(struct outbox *out, struct mail *m)
{
    m->next = NULL;
    *out->mails_end = m;
    out->mails_end = &m->next;
}

struct mail *
mail_create(enum mail_type type, uint64_t job_id)
{
    struct mail *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->type = type;
    m->job_id = job_id;
    return m;
}

void
mail_destroy(struct mail *m)
{
    if (!m)
        return;
    dt_buffer_deinit(&m->body);
    free(m);
}

uint32_t
mail_target(const struct mail *m)
{
    return m->to;
}

struct mail **
mail_next(struct mail *m)
{
    return &m->next;
}
