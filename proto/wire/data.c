/*
 * data.c - INIT, PUSH, PULL, PUSHPULL: requests and replies.
 *
 * Invariant of a decoded request: 1..DT_MAX_ITEMS items; weight at most DT_MAX_WEIGHT, so that the
 * sum over all ranks cannot overflow. Any thread.
 */
#include "proto/wire/data.h"

#include <string.h>

#include "proto/wire/tuple.h"

static bool
is_push(unsigned op)
{
    return op == DT_OP_PUSH || op == DT_OP_PUSHPULL;
}

static bool
is_pull(unsigned op)
{
    return op == DT_OP_PULL || op == DT_OP_PUSHPULL;
}

static bool
is_data(unsigned op)
{
    return op == DT_OP_INIT || is_push(op) || is_pull(op);
}

static unsigned
op_of(const struct dt_head *head)
{
    return head->op & ~(unsigned)DT_REPLY_BIT;
}

const char *
dt_fate_name(unsigned fate)
{
    static const char *const names[] = {
        [DT_FATE_NONE] = "none",
        [DT_FATE_APPLIED] = "applied",
        [DT_FATE_ACCUMULATED] = "accumulated",
        [DT_FATE_STALE] = "stale",
        [DT_FATE_DUPLICATE] = "duplicate",
        [DT_FATE_AHEAD] = "ahead",
        [DT_FATE_REFUSED] = "refused",
    };

    return fate < sizeof(names) / sizeof(names[0]) ? names[fate] : "?";
}

static void
write_version(struct dt_buffer *b, uint64_t version)
{
    if (version == DT_NO_VERSION)
        dt_write_nil(b);
    else
        dt_write_u64(b, version);
}

static void
write_item(struct dt_buffer *b, enum dt_op op, const struct dt_item *item)
{
    dt_write_array(b, op == DT_OP_INIT ? 2 : op == DT_OP_PUSH ? 3 : 4);
    dt_write_u64(b, item->variable);
    dt_write_u64(b, item->slice);
    if (op == DT_OP_PULL)
        write_version(b, item->version);
    else if (op != DT_OP_INIT)
        dt_write_u64(b, item->version);
    if (is_pull(op))
        dt_write_u64(b, item->want);
}

void
dt_data_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
               const struct dt_data *m)
{
    uint32_t i;

    bool has_clock = is_push(op) && m->clock;

    dt_head_request(b, op, request, session, (is_push(op) ? 4 : 1) + has_clock);
    if (is_push(op)) {
        dt_write_u64(b, m->counter);
        dt_write_u64(b, m->weight);
        dt_write_u64(b, m->count);
    }
    dt_write_array(b, m->n_items);
    for (i = 0; i < m->n_items; i++)
        write_item(b, op, &m->items[i]);
    if (has_clock)
        dt_write_u64(b, m->clock);
}

static void
read_item(struct dt_reader *r, unsigned op, struct dt_item *item)
{
    struct dt_tuple t;

    dt_tuple_open(&t, r);
    if (t.n_left < 2)
        r->failed = true;
    item->variable = (uint32_t)dt_tuple_u64(&t, UINT32_MAX, 0);
    item->slice = (uint32_t)dt_tuple_u64(&t, UINT32_MAX, 0);
    item->version = op == DT_OP_PULL ? DT_NO_VERSION : 0;
    item->want = 0;
    if (op != DT_OP_INIT)
        item->version = dt_tuple_u64(&t, UINT64_MAX, item->version);
    if (is_pull(op))
        item->want = dt_tuple_u64(&t, UINT64_MAX, 0);
    dt_tuple_close(&t);
}

enum dt_status
dt_data_decode(struct dt_head *head, struct dt_data *m)
{
    struct dt_reader *r = &head->fields;
    unsigned op = op_of(head);
    uint32_t i;

    m->counter = m->weight = m->clock = 0;
    m->count = m->n_items = 0;
    if (!is_data(op))
        return DT_R_MALFORMED;
    if (is_push(op)) {
        m->counter = dt_head_u64(head, UINT64_MAX, 0);
        m->weight = dt_head_u64(head, UINT64_MAX, 0);
        m->count = (uint32_t)dt_head_u64(head, UINT32_MAX, 0);
    }
    if (dt_head_next(head))
        m->n_items = dt_read_array(r, DT_MAX_ITEMS);
    for (i = 0; i < m->n_items && !r->failed; i++)
        read_item(r, op, &m->items[i]);
    if (is_push(op) && !r->failed)
        m->clock = dt_head_u64(head, UINT64_MAX, 0);
    if (r->failed || m->n_items == 0) {
        m->n_items = 0;
        return DT_R_MALFORMED;
    }
    return m->weight <= DT_MAX_WEIGHT && m->clock <= DT_MAX_CLOCK ? DT_OK : DT_R_BAD_VALUE;
}

void
dt_data_reply_encode(struct dt_buffer *b, enum dt_op op, uint64_t request, uint64_t session,
                     uint64_t step, const struct dt_data_reply *m)
{
    uint32_t i;

    dt_head_reply(b, op, request, session, DT_OK, "", step,
                  (is_push(op) ? 1u : 0u) + (is_pull(op) ? 1u : 0u) + (m->approximate ? 1u : 0u));
    if (is_push(op)) {
        dt_write_array(b, m->n_items);
        for (i = 0; i < m->n_items; i++) {
            dt_write_array(b, 2);
            dt_write_u64(b, m->items[i].fate);
            dt_write_u64(b, m->items[i].push_version);
        }
    }
    if (is_pull(op)) {
        dt_write_array(b, m->n_items);
        for (i = 0; i < m->n_items; i++) {
            dt_write_array(b, 2);
            dt_write_u64(b, m->items[i].version);
            dt_write_bool(b, m->items[i].modified);
        }
    }
    if (m->approximate)
        dt_write_bool(b, true);
}

static void
read_fate(struct dt_reader *r, struct dt_data_result *result)
{
    struct dt_tuple t;

    dt_tuple_open(&t, r);
    result->fate = (uint8_t)dt_tuple_u64(&t, UINT8_MAX, DT_FATE_NONE);
    result->push_version = dt_tuple_u64(&t, UINT64_MAX, 0);
    dt_tuple_close(&t);
}

static void
read_value(struct dt_reader *r, struct dt_data_result *result)
{
    struct dt_tuple t;

    dt_tuple_open(&t, r);
    result->version = dt_tuple_u64(&t, UINT64_MAX, 0);
    result->modified = dt_tuple_next(&t) && dt_read_bool(r);
    dt_tuple_close(&t);
}

/* One array of results; both arrays of a PUSHPULL have the same length. */
static void
read_results(struct dt_head *head, struct dt_data_reply *m, bool first,
             void (*read_one)(struct dt_reader *, struct dt_data_result *))
{
    struct dt_reader *r = &head->fields;
    uint32_t i, n = dt_head_next(head) ? dt_read_array(r, DT_MAX_ITEMS) : 0;

    if (n == 0 || (!first && n != m->n_items)) {
        r->failed = true;
        return;
    }
    if (first)
        memset(m->items, 0, n * sizeof(m->items[0]));
    m->n_items = n;
    for (i = 0; i < n && !r->failed; i++)
        read_one(r, &m->items[i]);
}

enum dt_status
dt_data_reply_decode(struct dt_head *head, struct dt_data_reply *m)
{
    unsigned op = op_of(head);

    m->n_items = 0;
    m->approximate = false;
    if (!is_data(op))
        return DT_R_MALFORMED;
    if (is_push(op))
        read_results(head, m, true, read_fate);
    if (is_pull(op) && !head->fields.failed)
        read_results(head, m, op == DT_OP_PULL, read_value);
    if (!head->fields.failed)
        m->approximate = dt_head_bool(head, false);
    if (!head->fields.failed)
        return DT_OK;
    m->n_items = 0;
    return DT_R_MALFORMED;
}
