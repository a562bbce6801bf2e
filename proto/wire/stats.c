/*
 * stats.c - STATS and the admin verbs: requests without fields, and KICK. Any thread.
 */
#include "proto/wire/stats.h"

#include "proto/wire/tuple.h"

void
dt_simple_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session)
{
    dt_head_request(b, op, request, session, 0);
}

void
dt_kick_encode(struct dt_buffer *b, uint64_t request, const struct dt_kick *m)
{
    dt_head_request(b, DT_OP_ADMIN_KICK, request, 0, 2);
    dt_write_str(b, m->job);
    dt_write_u64(b, m->rank);
}

enum dt_status
dt_kick_decode(struct dt_head *head, struct dt_kick *m)
{
    m->job[0] = '\0';
    if (dt_head_next(head))
        dt_read_cstr(&head->fields, m->job, sizeof(m->job));
    m->rank = (uint32_t)dt_head_u64(head, UINT32_MAX, DT_NO_RANK);
    if (head->fields.failed)
        return DT_R_MALFORMED;
    return dt_is_name(m->job) && m->rank < DT_MAX_RANKS ? DT_OK : DT_R_BAD_VALUE;
}
