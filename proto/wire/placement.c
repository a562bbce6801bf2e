/*
 * placement.c - the request ADMIN_PLACEMENT. Any thread.
 */
#include "proto/wire/placement.h"

#include "proto/wire/tuple.h"

void
dt_placement_encode(struct dt_buffer *b, uint64_t request, const struct dt_placement *m)
{
    dt_head_request(b, DT_OP_ADMIN_PLACEMENT, request, 0, 2);
    dt_write_str(b, m->job);
    dt_write_u64(b, m->first);
}

enum dt_status
dt_placement_decode(struct dt_head *head, struct dt_placement *m)
{
    m->job[0] = '\0';
    if (dt_head_next(head))
        dt_read_cstr(&head->fields, m->job, sizeof(m->job));
    m->first = (uint32_t)dt_head_u64(head, UINT32_MAX, 0);
    if (head->fields.failed)
        return DT_R_MALFORMED;
    return dt_is_name(m->job) ? DT_OK : DT_R_BAD_VALUE;
}
