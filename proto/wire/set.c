/*
 * set.c - SET: a key and a value. Any thread.
 */
#include "proto/wire/set.h"

void
dt_set_encode(struct dt_buffer *b, uint64_t request, uint64_t session, const struct dt_set *m)
{
    dt_head_request(b, DT_OP_SET, request, session, 2);
    dt_write_str(b, m->key);
    dt_write_u64(b, m->value);
}

enum dt_status
dt_set_decode(struct dt_head *head, struct dt_set *m)
{
    m->key[0] = 0;
    if (dt_head_next(head))
        dt_read_cstr(&head->fields, m->key, sizeof(m->key));
    m->value = dt_head_u64(head, UINT64_MAX, 0);
    return head->fields.failed || !m->key[0] ? DT_R_MALFORMED : DT_OK;
}
