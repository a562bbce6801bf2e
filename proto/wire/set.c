/*
 * set.c - SET: a key and a value; ADMIN_SET: with job, variable and step. Any thread.
 */
#include "proto/wire/set.h"

#include <math.h>

#include "proto/wire/tuple.h"

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

void
dt_admin_set_encode(struct dt_buffer *b, uint64_t request, const struct dt_admin_set *m)
{
    dt_head_request(b, DT_OP_ADMIN_SET, request, 0, 5);
    dt_write_str(b, m->job);
    dt_write_str(b, m->key);
    dt_write_double(b, m->value);
    dt_write_str(b, m->variable);
    if (m->step == DT_NO_VERSION)
        dt_write_nil(b);
    else
        dt_write_u64(b, m->step);
}

static void
read_text(struct dt_head *head, char *out, size_t bytes)
{
    out[0] = '\0';
    if (dt_head_next(head))
        dt_read_cstr(&head->fields, out, bytes);
}

enum dt_status
dt_admin_set_decode(struct dt_head *head, struct dt_admin_set *m)
{
    read_text(head, m->job, sizeof(m->job));
    read_text(head, m->key, sizeof(m->key));
    m->value = dt_head_next(head) ? dt_read_double(&head->fields) : (double)NAN;
    read_text(head, m->variable, sizeof(m->variable));
    m->step = DT_NO_VERSION;
    if (dt_head_next(head) && !dt_read_nil(&head->fields))
        m->step = dt_read_u64(&head->fields);
    if (head->fields.failed || !dt_is_name(m->job) || !dt_is_name(m->key) || !isfinite(m->value) ||
        (m->variable[0] && !dt_is_name(m->variable)))
        return DT_R_MALFORMED;
    return DT_OK;
}
