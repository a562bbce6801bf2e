/*
 * messages.c - round trips of every message with extreme values, defaults of missing fields, extra
 * fields, ranges.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/wire/samples.h"

TestSuite(messages, .timeout = 120);

static struct dt_head
decode(const struct dt_buffer *b)
{
    struct dt_head head;

    cr_assert_not(b->failed);
    cr_assert_leq(b->len, DT_MAX_HEADER_BYTES);
    cr_assert_eq(dt_head_decode(&head, b->data, b->len), DT_OK);
    return head;
}

Test(messages, envelope_of_a_request)
{
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_simple_encode(&b, DT_OP_STATS, UINT64_MAX, UINT64_MAX - 1);
    head = decode(&b);
    cr_assert_eq(head.op, DT_OP_STATS);
    cr_assert_eq(head.request, UINT64_MAX);
    cr_assert_eq(head.session, UINT64_MAX - 1);
    cr_assert_eq(head.n_left, 0);
    cr_assert_eq(dt_head_u64(&head, 10, 7), 7, "a missing field takes its default");
    cr_assert(dt_head_bool(&head, true));
    dt_buffer_deinit(&b);
}

Test(messages, envelope_of_a_reply)
{
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_head_reply(&b, DT_OP_PUSH, 5, 6, DT_R_NOT_FINITE, "no\nnewline", UINT64_MAX, 0);
    head = decode(&b);
    cr_assert_eq(head.op, DT_OP_PUSH | DT_REPLY_BIT);
    cr_assert_eq(head.status, DT_R_NOT_FINITE);
    cr_assert_eq(head.step, UINT64_MAX);
    cr_assert_str_eq(head.text, "no?newline", "one line, whatever the peer sends");
    dt_buffer_deinit(&b);
}

Test(messages, long_texts_are_cut_at_a_character)
{
    struct dt_buffer b = {0};
    struct dt_head head;
    char text[1200] = "x";
    unsigned i;

    for (i = 0; i < 400; i++)
        strcat(text, "\xc3\xa4");
    dt_head_reply(&b, DT_OP_PUSH, 1, 2, DT_R_QUOTA, text, 0, 0);
    head = decode(&b);
    cr_assert_eq(strlen(head.text), 511, "512 would be half a character");
    dt_buffer_deinit(&b);
}

Test(messages, another_version_is_told_from_garbage)
{
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_write_array(&b, 5);
    dt_write_u64(&b, 2);
    dt_write_u64(&b, DT_OP_HELLO);
    dt_write_u64(&b, 77);
    dt_write_u64(&b, 88);
    dt_write_str(&b, "new");
    cr_assert_eq(dt_head_decode(&head, b.data, b.len), DT_R_VERSION);
    cr_assert_eq(head.op, DT_OP_HELLO);
    cr_assert_eq(head.request, 77);
    cr_assert_eq(head.session, 88);
    cr_assert_eq(dt_head_decode(&head, "GET / HTTP/1.1", 14), DT_R_MALFORMED);
    cr_assert_eq(dt_head_decode(&head, NULL, 0), DT_R_MALFORMED);
    cr_assert_eq(dt_head_decode(&head, "\x90", 1), DT_R_MALFORMED);
    cr_assert_eq(dt_head_decode(&head, "\x91\x01", 2), DT_R_MALFORMED, "op and ids are missing");
    dt_buffer_deinit(&b);
}

Test(messages, hello)
{
    struct dt_hello m, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    sample_hello(&m);
    dt_hello_encode(&b, 3, &m);
    head = decode(&b);
    cr_assert_eq(dt_hello_decode(&head, &got), DT_OK);
    cr_assert_eq(memcmp(&m, &got, sizeof(m)), 0);
    dt_buffer_deinit(&b);
}

static enum dt_status
status_of_hello(const struct dt_hello *m)
{
    struct dt_hello got;
    struct dt_buffer b = {0};
    struct dt_head head;
    enum dt_status status;

    dt_hello_encode(&b, 3, m);
    head = decode(&b);
    status = dt_hello_decode(&head, &got);
    dt_buffer_deinit(&b);
    return status;
}

Test(messages, hello_ranges)
{
    static const char *const bad[] = {"", "a b", "a\n", "job%d", "j\xc3\xa4", "a,b"};
    struct dt_hello m;
    unsigned i;

    sample_hello(&m);
    m.rank = DT_MAX_RANKS - 1;
    cr_assert_eq(status_of_hello(&m), DT_OK);
    m.rank = DT_MAX_RANKS;
    cr_assert_eq(status_of_hello(&m), DT_R_BAD_VALUE);
    sample_hello(&m);
    m.task = DT_MAX_TASKS;
    cr_assert_eq(status_of_hello(&m), DT_R_BAD_VALUE);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sample_hello(&m);
        strcpy(m.job, bad[i]);
        cr_assert_eq(status_of_hello(&m), DT_R_BAD_VALUE, "job name %u", i);
    }
    strcpy(m.job, "Az09_./:-");
    cr_assert_eq(status_of_hello(&m), DT_OK);
}

Test(messages, hello_with_its_first_four_fields_takes_defaults)
{
    unsigned char uuid[16] = "0123456789abcde";
    struct dt_buffer b = {0};
    struct dt_hello m;
    struct dt_head head;

    dt_head_request(&b, DT_OP_HELLO, 1, 0, 4);
    dt_write_bin(&b, uuid, 16);
    dt_write_u64(&b, 3);
    dt_write_u64(&b, 0);
    dt_write_str(&b, "job");
    head = decode(&b);
    cr_assert_eq(dt_hello_decode(&head, &m), DT_OK);
    cr_assert(m.rank == 3 && !m.fresh && m.life == 0 && m.n_features == 0);
    cr_assert_str_empty(m.host);
    dt_buffer_deinit(&b);
}

Test(messages, hello_reply)
{
    static struct dt_hello_reply m, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    sample_hello_reply(&m);
    dt_hello_reply_encode(&b, 3, 4, 5, &m);
    head = decode(&b);
    cr_assert_eq(head.op, DT_OP_HELLO | DT_REPLY_BIT);
    cr_assert_eq(dt_hello_reply_decode(&head, &got), DT_OK);
    cr_assert_eq(memcmp(&m, &got, sizeof(m)), 0);
    m.shard = m.n_shards = 3;
    dt_buffer_clear(&b);
    dt_hello_reply_encode(&b, 3, 4, 5, &m);
    head = decode(&b);
    cr_assert_eq(dt_hello_reply_decode(&head, &got), DT_R_BAD_VALUE, "shard 3 of 3");
    dt_buffer_deinit(&b);
}

static void
check_data(enum dt_op op, uint32_t n)
{
    struct dt_data m, got;
    struct dt_buffer b = {0};
    struct dt_head head;
    uint32_t i;
    bool push = op == DT_OP_PUSH || op == DT_OP_PUSHPULL;
    bool pull = op == DT_OP_PULL || op == DT_OP_PUSHPULL;

    sample_data(&m, n);
    dt_data_encode(&b, op, 1, 2, &m);
    head = decode(&b);
    cr_assert_eq(dt_data_decode(&head, &got), DT_OK);
    cr_assert_eq(got.n_items, n);
    cr_assert_eq(got.counter, push ? m.counter : 0);
    cr_assert_eq(got.weight, push ? m.weight : 0);
    cr_assert_eq(got.count, push ? m.count : 0);
    cr_assert_eq(got.clock, push ? m.clock : 0);
    for (i = 0; i < n; i++) {
        cr_assert_eq(got.items[i].variable, m.items[i].variable);
        cr_assert_eq(got.items[i].slice, m.items[i].slice);
        cr_assert_eq(got.items[i].version, op == DT_OP_INIT ? 0 : m.items[i].version);
        cr_assert_eq(got.items[i].want, pull ? m.items[i].want : 0);
    }
    dt_buffer_deinit(&b);
}

Test(messages, data_requests)
{
    static const enum dt_op ops[] = {DT_OP_INIT, DT_OP_PUSH, DT_OP_PULL, DT_OP_PUSHPULL};
    unsigned i;

    for (i = 0; i < 4; i++) {
        check_data(ops[i], 1);
        check_data(ops[i], DT_MAX_ITEMS);
    }
}

Test(messages, a_pull_of_nothing_held_carries_nil)
{
    struct dt_data m = {.n_items = 1}, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    m.items[0] = (struct dt_item){1, 2, DT_NO_VERSION, 0};
    dt_data_encode(&b, DT_OP_PULL, 1, 2, &m);
    cr_assert_eq(memcmp(b.data + b.len - 6, "\x91\x94\x01\x02\xc0\x00", 6), 0);
    head = decode(&b);
    cr_assert_eq(dt_data_decode(&head, &got), DT_OK);
    cr_assert_eq(got.items[0].version, DT_NO_VERSION);
    dt_buffer_deinit(&b);
}

static enum dt_status
status_of_push(uint32_t n_items, uint64_t weight)
{
    struct dt_data got;
    struct dt_buffer b = {0};
    struct dt_head head;
    enum dt_status status;
    uint32_t i;

    dt_head_request(&b, DT_OP_PUSH, 1, 2, 4);
    dt_write_u64(&b, 1);
    dt_write_u64(&b, weight);
    dt_write_u64(&b, 1);
    dt_write_array(&b, n_items);
    for (i = 0; i < n_items; i++) {
        dt_write_array(&b, 5); /* one that this version does not know */
        dt_write_u64(&b, 0);
        dt_write_u64(&b, i);
        dt_write_u64(&b, 9);
        dt_write_str(&b, "later");
        dt_write_map(&b, 0);
    }
    head = decode(&b);
    status = dt_data_decode(&head, &got);
    if (status == DT_OK)
        cr_assert(got.n_items == n_items && got.items[0].slice == 0 && got.items[0].version == 9);
    dt_buffer_deinit(&b);
    return status;
}

Test(messages, data_ranges)
{
    cr_assert_eq(status_of_push(1, 0), DT_OK, "extra fields of an item are skipped");
    cr_assert_eq(status_of_push(64, DT_MAX_WEIGHT), DT_OK);
    cr_assert_eq(status_of_push(0, 1), DT_R_MALFORMED);
    cr_assert_eq(status_of_push(65, 1), DT_R_MALFORMED);
    cr_assert_eq(status_of_push(1, DT_MAX_WEIGHT + 1), DT_R_BAD_VALUE);
}

static void
check_data_reply(enum dt_op op, uint32_t n)
{
    struct dt_data_reply m, got;
    struct dt_buffer b = {0};
    struct dt_head head;
    uint32_t i;

    sample_data_reply(&m, n);
    dt_data_reply_encode(&b, op, 1, 2, 3, &m);
    head = decode(&b);
    cr_assert_eq(head.step, 3);
    cr_assert_eq(dt_data_reply_decode(&head, &got), DT_OK);
    cr_assert_eq(got.n_items, n);
    for (i = 0; i < n; i++) {
        cr_assert_eq(got.items[i].fate, op == DT_OP_PULL ? 0 : m.items[i].fate);
        cr_assert_eq(got.items[i].push_version, op == DT_OP_PULL ? 0 : m.items[i].push_version);
        cr_assert_eq(got.items[i].version, op == DT_OP_PUSH ? 0 : m.items[i].version);
        cr_assert_eq(got.items[i].modified, op == DT_OP_PUSH ? false : m.items[i].modified);
    }
    dt_buffer_deinit(&b);
}

Test(messages, data_replies)
{
    static const enum dt_op ops[] = {DT_OP_PUSH, DT_OP_PULL, DT_OP_PUSHPULL};
    unsigned i;

    for (i = 0; i < 3; i++) {
        check_data_reply(ops[i], 1);
        check_data_reply(ops[i], DT_MAX_ITEMS);
    }
}

Test(messages, both_halves_of_a_pushpull_reply_have_one_length)
{
    struct dt_data_reply got;
    struct dt_buffer b = {0};
    struct dt_head head;
    unsigned i;

    dt_head_reply(&b, DT_OP_PUSHPULL, 1, 2, DT_OK, "", 3, 2);
    dt_write_array(&b, 1);
    dt_write_array(&b, 2);
    dt_write_u64(&b, DT_FATE_STALE);
    dt_write_u64(&b, 4);
    dt_write_array(&b, 2);
    for (i = 0; i < 2; i++) {
        dt_write_array(&b, 2);
        dt_write_u64(&b, 4);
        dt_write_bool(&b, false);
    }
    head = decode(&b);
    cr_assert_eq(dt_data_reply_decode(&head, &got), DT_R_MALFORMED);
    cr_assert_eq(got.n_items, 0);
    dt_buffer_deinit(&b);
}

Test(messages, steps)
{
    static const uint64_t steps[] = {0, 1, 1ull << 40, DT_NO_VERSION};
    struct dt_step_msg m;
    struct dt_head head;
    unsigned i;

    for (i = 0; i < 4; i++) {
        struct dt_buffer b = {0}, reply = {0};

        dt_step_encode(&b, DT_OP_LEAVE, 1, 2, steps[i]);
        head = decode(&b);
        cr_assert_eq(dt_step_decode(&head, &m), DT_OK);
        cr_assert_eq(m.step, steps[i]);
        dt_step_reply_encode(&reply, DT_OP_JOIN, 1, 2, 9, steps[i]);
        head = decode(&reply);
        cr_assert_eq(head.step, 9);
        cr_assert_eq(dt_step_decode(&head, &m), DT_OK);
        cr_assert_eq(m.step, steps[i]);
        dt_buffer_deinit(&b);
        dt_buffer_deinit(&reply);
    }
}

Test(messages, clock)
{
    struct dt_buffer b = {0};
    struct dt_step_msg m;
    struct dt_head head;

    dt_clock_encode(&b, 1, 2, 77, DT_MAX_CLOCK);
    head = decode(&b);
    cr_assert_eq(dt_step_decode(&head, &m), DT_OK);
    cr_assert(m.step == 77 && m.clock == DT_MAX_CLOCK);
    dt_buffer_clear(&b);
    dt_step_encode(&b, DT_OP_CLOCK, 1, 2, 77);
    head = decode(&b);
    cr_assert_eq(dt_step_decode(&head, &m), DT_OK);
    cr_assert(m.step == 77 && m.clock == 0, "not told");
    dt_buffer_deinit(&b);
}

Test(messages, a_step_may_be_missing_or_nil)
{
    struct dt_buffer b = {0};
    struct dt_step_msg m = {9, 9};
    struct dt_head head;

    dt_simple_encode(&b, DT_OP_JOIN, 1, 2);
    head = decode(&b);
    cr_assert_eq(dt_step_decode(&head, &m), DT_OK);
    cr_assert_eq(m.step, 0);
    dt_buffer_clear(&b);
    dt_head_request(&b, DT_OP_LEAVE, 1, 2, 1);
    dt_write_nil(&b);
    head = decode(&b);
    cr_assert_eq(dt_step_decode(&head, &m), DT_OK);
    cr_assert_eq(m.step, DT_NO_VERSION);
    dt_buffer_deinit(&b);
}

Test(messages, waiting)
{
    struct dt_waiting m = {.reason = DT_WAIT_STEP, .step = UINT64_MAX, .n_ranks = 32}, got;
    struct dt_buffer b = {0};
    struct dt_head head;
    uint32_t i;

    for (i = 0; i < 32; i++)
        m.ranks[i] = 1023 - i;
    dt_waiting_encode(&b, DT_OP_PULL, 1, 2, DT_PARKED, 3, &m);
    head = decode(&b);
    cr_assert_eq(head.status, DT_PARKED);
    cr_assert_eq(head.op, DT_OP_PULL | DT_REPLY_BIT);
    cr_assert_eq(dt_waiting_decode(&head, &got), DT_OK);
    cr_assert(got.reason == m.reason && got.step == m.step && got.n_ranks == 32);
    cr_assert_eq(memcmp(m.ranks, got.ranks, sizeof(m.ranks)), 0);
    dt_buffer_deinit(&b);
}

Test(messages, init_done)
{
    struct dt_init_done m = {true, DT_MAX_VARIABLES, UINT64_MAX}, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_init_done_encode(&b, 1, 2, &m);
    head = decode(&b);
    cr_assert_eq(dt_init_done_decode(&head, &got), DT_OK);
    cr_assert(got.sent && got.n_variables == m.n_variables && got.fingerprint == UINT64_MAX);
    dt_buffer_deinit(&b);
}

Test(messages, kick)
{
    struct dt_kick m = {"fashion", 7}, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_kick_encode(&b, 1, &m);
    head = decode(&b);
    cr_assert_eq(dt_kick_decode(&head, &got), DT_OK);
    cr_assert_str_eq(got.job, "fashion");
    cr_assert_eq(got.rank, 7);
    m.rank = DT_MAX_RANKS;
    dt_buffer_clear(&b);
    dt_kick_encode(&b, 1, &m);
    head = decode(&b);
    cr_assert_eq(dt_kick_decode(&head, &got), DT_R_BAD_VALUE);
    dt_buffer_deinit(&b);
}

Test(messages, admin_set)
{
    struct dt_admin_set m = {"fashion", "lr", 0.01, "dense/kernel", 500}, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_admin_set_encode(&b, 1, &m);
    cr_assert_eq(dt_head_decode(&head, b.data, b.len), DT_OK);
    cr_assert_eq(dt_admin_set_decode(&head, &got), DT_OK);
    cr_expect_str_eq(got.job, m.job);
    cr_expect_str_eq(got.key, m.key);
    cr_expect_str_eq(got.variable, m.variable);
    cr_expect_eq(got.value, m.value);
    cr_expect_eq(got.step, m.step);
    dt_buffer_deinit(&b);
    m.value = (double)INFINITY;
    dt_admin_set_encode(&b, 1, &m);
    cr_assert_eq(dt_head_decode(&head, b.data, b.len), DT_OK);
    cr_assert_eq(dt_admin_set_decode(&head, &got), DT_R_MALFORMED);
    dt_buffer_deinit(&b);
    dt_head_request(&b, DT_OP_ADMIN_SET, 1, 0, 3); /* variable and step have defaults */
    dt_write_str(&b, "fashion");
    dt_write_str(&b, "max_staleness");
    dt_write_i64(&b, -1);
    cr_assert_eq(dt_head_decode(&head, b.data, b.len), DT_OK);
    cr_assert_eq(dt_admin_set_decode(&head, &got), DT_OK);
    cr_expect(got.value == -1 && !got.variable[0] && got.step == DT_NO_VERSION);
    dt_buffer_deinit(&b);
}

Test(messages, placement)
{
    struct dt_placement m = {"fashion", 256}, got;
    struct dt_buffer b = {0};
    struct dt_head head;

    dt_placement_encode(&b, 1, &m);
    head = decode(&b);
    cr_assert_eq(head.op, DT_OP_ADMIN_PLACEMENT);
    cr_assert_eq(dt_placement_decode(&head, &got), DT_OK);
    cr_assert_str_eq(got.job, "fashion");
    cr_assert_eq(got.first, 256);
    dt_buffer_clear(&b);
    dt_head_request(&b, DT_OP_ADMIN_PLACEMENT, 1, 0, 1);
    dt_write_str(&b, "fashion");
    head = decode(&b);
    cr_assert_eq(dt_placement_decode(&head, &got), DT_OK);
    cr_assert_eq(got.first, 0, "missing: from the start");
    m.job[0] = '\0';
    dt_buffer_clear(&b);
    dt_placement_encode(&b, 1, &m);
    head = decode(&b);
    cr_assert_eq(dt_placement_decode(&head, &got), DT_R_BAD_VALUE);
    dt_buffer_deinit(&b);
}

Test(messages, names)
{
    cr_assert_str_eq(dt_op_name(DT_OP_PUSHPULL | DT_REPLY_BIT), "PUSHPULL");
    cr_assert_str_eq(dt_op_name(15), "?");
    cr_assert_str_eq(dt_op_name(4000000000u), "?");
    cr_assert_str_eq(dt_fate_name(DT_FATE_REFUSED), "refused");
    cr_assert_str_eq(dt_fate_name(7), "?");
}
