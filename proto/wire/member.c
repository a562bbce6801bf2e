/*
 * member.c - JOIN, LEAVE, HEARTBEAT, INIT_DONE, CLOCK, WAIT_STEP: small control messages.
 * Any thread.
 */
#include "proto/wire/member.h"

static enum dt_status
verdict(const struct dt_head *head)
{
    return head->fields.failed ? DT_R_MALFORMED : DT_OK;
}

void
dt_step_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
               uint64_t step)
{
    dt_head_request(b, op, request, session, 1);
    dt_write_u64(b, step);
}

void
dt_clock_encode(struct dt_buffer *b, uint64_t request, uint64_t session, uint64_t step,
                uint64_t clock)
{
    dt_head_request(b, DT_OP_CLOCK, request, session, 2);
    dt_write_u64(b, step);
    dt_write_u64(b, clock);
}

/* nil is DT_NO_VERSION, as in PULL. */
enum dt_status
dt_step_decode(struct dt_head *head, struct dt_step_msg *m)
{
    m->step = 0;
    if (dt_head_next(head)) {
        if (dt_read_nil(&head->fields))
            m->step = DT_NO_VERSION;
        else
            m->step = dt_read_u64(&head->fields);
    }
    m->clock = dt_head_u64(head, UINT64_MAX, 0);
    return verdict(head);
}

void
dt_step_reply_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                     uint64_t job_step, uint64_t step)
{
    dt_head_reply(b, op, request, session, DT_OK, "", job_step, 1);
    dt_write_u64(b, step);
}

void
dt_heartbeat_encode(struct dt_buffer *b, uint64_t request, uint64_t session)
{
    dt_head_request(b, DT_OP_HEARTBEAT, request, session, 0);
}

void
dt_waiting_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                  enum dt_status status, uint64_t job_step, const struct dt_waiting *m)
{
    uint32_t i, n = m->n_ranks < DT_MAX_WAITED_RANKS ? m->n_ranks : DT_MAX_WAITED_RANKS;

    dt_head_reply(b, op, request, session, status, "", job_step, 3);
    dt_write_u64(b, m->reason);
    dt_write_u64(b, m->step);
    dt_write_array(b, n);
    for (i = 0; i < n; i++)
        dt_write_u64(b, m->ranks[i]);
}

enum dt_status
dt_waiting_decode(struct dt_head *head, struct dt_waiting *m)
{
    uint32_t i;

    m->reason = (uint32_t)dt_head_u64(head, UINT32_MAX, DT_WAIT_NOTHING);
    m->step = dt_head_u64(head, UINT64_MAX, 0);
    m->n_ranks = 0;
    if (dt_head_next(head))
        m->n_ranks = dt_read_array(&head->fields, DT_MAX_WAITED_RANKS);
    for (i = 0; i < m->n_ranks; i++)
        m->ranks[i] = (uint32_t)dt_read_u64_max(&head->fields, UINT32_MAX);
    return verdict(head);
}

void
dt_init_done_encode(struct dt_buffer *b, uint64_t request, uint64_t session,
                    const struct dt_init_done *m)
{
    dt_head_request(b, DT_OP_INIT_DONE, request, session, 3);
    dt_write_bool(b, m->sent);
    dt_write_u64(b, m->n_variables);
    dt_write_u64(b, m->fingerprint);
}

enum dt_status
dt_init_done_decode(struct dt_head *head, struct dt_init_done *m)
{
    m->sent = dt_head_bool(head, false);
    m->n_variables = (uint32_t)dt_head_u64(head, DT_MAX_VARIABLES, 0);
    m->fingerprint = dt_head_u64(head, UINT64_MAX, 0);
    return verdict(head);
}
