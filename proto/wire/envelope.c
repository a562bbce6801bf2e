/*
 * envelope.c - the first elements of every header frame.
 *
 * Invariant: after DT_OK the whole header is known to be one well-formed array without bytes behind
 * it; so the decoders of the operations only look at types and ranges. Any thread.
 */
#include "proto/wire/envelope.h"

#include <string.h>

#include "proto/wire/tuple.h"

#define N_REQUEST 4 /* version, op, request, session */
#define N_REPLY 7   /* and status, text, step */

/* Another version may order the rest in another way: what can be read is taken. */
static enum dt_status
decode_other_version(struct dt_head *head)
{
    struct dt_reader *r = &head->fields;

    head->op = (uint32_t)dt_head_u64(head, 255, 0);
    head->request = dt_head_u64(head, UINT64_MAX, 0);
    head->session = dt_head_u64(head, UINT64_MAX, 0);
    r->failed = true;
    r->left = 0;
    return DT_R_VERSION;
}

static void
decode_reply(struct dt_head *head)
{
    struct dt_reader *r = &head->fields;

    head->status = (enum dt_status)dt_read_u64_max(r, DT_E_USAGE - 1);
    dt_read_text(r, head->text, sizeof(head->text));
    head->step = dt_read_u64(r);
}

enum dt_status
dt_head_decode(struct dt_head *head, const void *data, size_t bytes)
{
    struct dt_reader *r = &head->fields;
    uint32_t n, n_common;

    memset(head, 0, sizeof(*head));
    dt_reader_init(r, data, bytes <= DT_MAX_HEADER_BYTES ? bytes : 0);
    if (bytes > DT_MAX_HEADER_BYTES || !dt_is_one_object(data, bytes))
        goto malformed;
    n = dt_read_array(r, DT_MAX_HEADER_BYTES);
    head->version = (uint32_t)dt_read_u64_max(r, UINT32_MAX);
    if (r->failed)
        goto malformed;
    head->n_left = n - 1;
    if (head->version != DT_PROTOCOL_VERSION)
        return decode_other_version(head);
    if (n < N_REQUEST)
        goto malformed;
    head->op = (uint32_t)dt_read_u64_max(r, 255);
    head->request = dt_read_u64(r);
    head->session = dt_read_u64(r);
    n_common = head->op & DT_REPLY_BIT ? N_REPLY : N_REQUEST;
    if (n < n_common)
        goto malformed;
    if (n_common == N_REPLY)
        decode_reply(head);
    head->n_left = n - n_common;
    if (!r->failed)
        return DT_OK;
malformed:
    head->n_left = 0;
    r->failed = true;
    r->left = 0;
    return DT_R_MALFORMED;
}

bool
dt_head_next(struct dt_head *head)
{
    if (head->fields.failed || head->n_left == 0)
        return false;
    head->n_left--;
    return true;
}

uint64_t
dt_head_u64(struct dt_head *head, uint64_t max, uint64_t def)
{
    if (!dt_head_next(head) || dt_read_nil(&head->fields))
        return def;
    return dt_read_u64_max(&head->fields, max);
}

bool
dt_head_bool(struct dt_head *head, bool def)
{
    if (!dt_head_next(head) || dt_read_nil(&head->fields))
        return def;
    return dt_read_bool(&head->fields);
}

static void
write_common(struct dt_buffer *b, uint32_t n, unsigned op, uint64_t request, uint64_t session)
{
    dt_write_array(b, n);
    dt_write_u64(b, DT_PROTOCOL_VERSION);
    dt_write_u64(b, op);
    dt_write_u64(b, request);
    dt_write_u64(b, session);
}

void
dt_head_request(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                uint32_t n_fields)
{
    write_common(b, N_REQUEST + n_fields, op, request, session);
}

/* At most DT_MAX_TEXT bytes, not cut inside a UTF-8 character. */
static void
write_text(struct dt_buffer *b, const char *text)
{
    char cut[DT_MAX_TEXT + 1];
    size_t n = strnlen(text, sizeof(cut));

    if (n <= DT_MAX_TEXT) {
        dt_write_str(b, text);
        return;
    }
    n = DT_MAX_TEXT;
    while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(cut, text, n);
    cut[n] = '\0';
    dt_write_str(b, cut);
}

void
dt_head_reply(struct dt_buffer *b, unsigned op, uint64_t request, uint64_t session,
              enum dt_status status, const char *text, uint64_t step, uint32_t n_fields)
{
    write_common(b, N_REPLY + n_fields, op | DT_REPLY_BIT, request, session);
    dt_write_u64(b, (uint64_t)status);
    write_text(b, text ? text : "");
    dt_write_u64(b, step);
}
