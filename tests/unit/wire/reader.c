/*
 * reader.c - the bounded reader: each type, its sticky error, and agreement with msgpack-c on random
 * valid input.
 */
#include <criterion/criterion.h>
#include <msgpack.h>
#include <string.h>

#include "proto/wire/reader.h"
#include "proto/wire/writer.h"

TestSuite(reader, .timeout = 120);

static struct dt_reader
reader_on(const void *data, size_t bytes)
{
    struct dt_reader r;

    dt_reader_init(&r, data, bytes);
    return r;
}

Test(reader, integers_of_every_width)
{
    static const uint64_t values[] = {0,         1,          127,        128,           255,
                                      256,       65535,      65536,      UINT32_MAX,    1ull << 32,
                                      INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 1};
    struct dt_buffer b = {0};
    struct dt_reader r;
    unsigned i;

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        dt_buffer_clear(&b);
        dt_write_u64(&b, values[i]);
        r = reader_on(b.data, b.len);
        cr_assert_eq(dt_read_u64(&r), values[i]);
        cr_assert(!r.failed && r.left == 0);
        r = reader_on(b.data, b.len);
        cr_assert_eq(dt_read_i64(&r), values[i] <= INT64_MAX ? (int64_t)values[i] : 0);
        cr_assert_eq(r.failed, values[i] > INT64_MAX);
    }
    dt_buffer_deinit(&b);
}

Test(reader, negative_integers_fail_a_u64_read)
{
    static const int64_t values[] = {
        -1, -32, -33, -128, -129, -32768, -32769, INT32_MIN, (int64_t)INT32_MIN - 1, INT64_MIN};
    struct dt_buffer b = {0};
    struct dt_reader r;
    unsigned i;

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        dt_buffer_clear(&b);
        dt_write_i64(&b, values[i]);
        r = reader_on(b.data, b.len);
        cr_assert_eq(dt_read_i64(&r), values[i]);
        cr_assert(!r.failed);
        r = reader_on(b.data, b.len);
        cr_assert_eq(dt_read_u64(&r), 0);
        cr_assert(r.failed);
    }
    dt_buffer_deinit(&b);
}

Test(reader, signed_types_with_positive_values_are_accepted)
{
    static const unsigned char seven[] = {0xd3, 0, 0, 0, 0, 0, 0, 0, 7};
    struct dt_reader r = reader_on(seven, sizeof(seven));

    cr_assert_eq(dt_read_u64(&r), 7);
    cr_assert(!r.failed);
}

Test(reader, doubles_come_from_every_number)
{
    struct dt_buffer b = {0};
    struct dt_reader r;

    dt_write_float(&b, 0.1f);
    dt_write_double(&b, -0.1);
    dt_write_u64(&b, UINT64_MAX);
    dt_write_i64(&b, -5);
    dt_write_bool(&b, true);
    r = reader_on(b.data, b.len);
    cr_assert_eq(dt_read_double(&r), (double)0.1f);
    cr_assert_eq(dt_read_double(&r), -0.1);
    cr_assert_eq(dt_read_double(&r), 18446744073709551616.0);
    cr_assert_eq(dt_read_double(&r), -5.0);
    cr_assert(!r.failed);
    dt_read_double(&r);
    cr_assert(r.failed, "a bool is no number");
    dt_buffer_deinit(&b);
}

Test(reader, the_error_is_sticky)
{
    static const unsigned char bytes[] = {0xc0, 1, 2, 0xa1, 'x'};
    struct dt_reader r = reader_on(bytes, sizeof(bytes));
    char text[8] = "kept";

    cr_assert_eq(dt_read_u64(&r), 0);
    cr_assert(r.failed);
    cr_assert_eq(dt_read_u64(&r), 0);
    dt_read_cstr(&r, text, sizeof(text));
    cr_assert_str_empty(text);
    cr_assert_eq(dt_read_peek(&r), DT_KIND_NONE);
    cr_assert_not(dt_read_nil(&r));
    cr_assert_eq(dt_read_array(&r, 100), 0);
    cr_assert(r.failed);
}

Test(reader, limits_are_kept)
{
    struct dt_buffer b = {0};
    struct dt_reader r;
    char text[4];
    unsigned char four[4];

    dt_write_str(&b, "abc");
    r = reader_on(b.data, b.len);
    dt_read_cstr(&r, text, sizeof(text));
    cr_assert_str_eq(text, "abc");
    r = reader_on(b.data, b.len);
    dt_read_cstr(&r, text, 3);
    cr_assert(r.failed, "three characters do not fit with their NUL");
    r = reader_on(b.data, b.len);
    cr_assert_eq(dt_read_str(&r, 2).len, 0);
    cr_assert(r.failed);
    dt_buffer_clear(&b);
    dt_write_bin(&b, "123", 3);
    r = reader_on(b.data, b.len);
    dt_read_exact_bin(&r, four, 4);
    cr_assert(r.failed, "3 bytes are not 4");
    r = reader_on("\xa2x", 3);
    dt_read_cstr(&r, text, sizeof(text));
    cr_assert(r.failed, "a NUL inside");
    r = reader_on("\xcc\x0b", 2);
    dt_read_u64_max(&r, 10);
    cr_assert(r.failed);
    dt_buffer_deinit(&b);
}

Test(reader, containers_need_the_bytes_for_their_elements)
{
    struct dt_reader r = reader_on("\x93\x01\x02", 3);

    cr_assert_eq(dt_read_array(&r, 10), 0);
    cr_assert(r.failed);
    r = reader_on("\x82\x01\x02\x03", 4);
    cr_assert_eq(dt_read_map(&r, 10), 0);
    cr_assert(r.failed);
    r = reader_on("\x93\x01\x02\x03", 4);
    cr_assert_eq(dt_read_array(&r, 2), 0);
    cr_assert(r.failed, "more than max");
    r = reader_on("\x93\x01\x02\x03", 4);
    cr_assert_eq(dt_read_array(&r, 3), 3);
}

Test(reader, an_unused_lead_byte_is_refused)
{
    struct dt_reader r = reader_on("\xc1", 1);

    dt_read_skip(&r);
    cr_assert(r.failed);
}

/* A fixed sequence of random numbers. */
static uint64_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 20;
}

static uint64_t
random_width(uint64_t *state)
{
    uint64_t v = next_random(state) << 32 ^ next_random(state) ^ next_random(state) << 50;

    return v >> next_random(state) % 64;
}

static void
random_string(msgpack_packer *pk, uint64_t *state, bool bin)
{
    static char text[70000];
    size_t n = next_random(state) % 20 ? next_random(state) % 40 : next_random(state) % 70000;

    memset(text, 'a' + (int)(n % 26), n);
    if (bin) {
        msgpack_pack_bin(pk, n);
        msgpack_pack_bin_body(pk, text, n);
    } else {
        msgpack_pack_str(pk, n);
        msgpack_pack_str_body(pk, text, n);
    }
}

static void
random_scalar(msgpack_packer *pk, uint64_t *state)
{
    uint64_t v = random_width(state);
    double d;

    switch (next_random(state) % 8) {
    case 0:
        msgpack_pack_nil(pk);
        break;
    case 1:
        if (v % 2)
            msgpack_pack_true(pk);
        else
            msgpack_pack_false(pk);
        break;
    case 2:
        msgpack_pack_int64(pk, (int64_t)(0 - (v >> 1)));
        break;
    case 3:
        msgpack_pack_float(pk, (float)v / 3.0f);
        break;
    case 4:
        d = (double)v / 7.0;
        msgpack_pack_double(pk, d);
        break;
    case 5:
        random_string(pk, state, true);
        break;
    case 6:
        random_string(pk, state, false);
        break;
    default:
        msgpack_pack_uint64(pk, v);
    }
}

static void
random_object(msgpack_packer *pk, uint64_t *state, unsigned depth)
{
    unsigned kind = (unsigned)(next_random(state) % 10);
    size_t n = next_random(state) % (next_random(state) % 10 ? 6 : 40), i;

    if (depth >= 6 || kind < 6) {
        random_scalar(pk, state);
    } else if (kind < 8) {
        msgpack_pack_array(pk, n);
        for (i = 0; i < n; i++)
            random_object(pk, state, depth + 1);
    } else if (kind == 8) {
        msgpack_pack_map(pk, n);
        for (i = 0; i < 2 * n; i++)
            random_object(pk, state, depth + 1);
    } else {
        n = 1 + n % 17;
        msgpack_pack_ext(pk, n, 42);
        msgpack_pack_ext_body(pk, "0123456789abcdefg", n);
    }
}

static void compare(struct dt_reader *r, const msgpack_object *o);

static void
compare_number(struct dt_reader *r, const msgpack_object *o)
{
    if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
        cr_assert_eq(dt_read_peek(r), DT_KIND_INT);
        cr_assert_eq(dt_read_u64(r), o->via.u64);
    } else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        cr_assert_eq(dt_read_peek(r), DT_KIND_INT);
        cr_assert_eq(dt_read_i64(r), o->via.i64);
    } else {
        cr_assert_eq(dt_read_peek(r), DT_KIND_FLOAT);
        cr_assert_eq(dt_read_double(r), o->via.f64);
    }
}

static void
compare_bytes(struct dt_reader *r, const msgpack_object *o)
{
    bool bin = o->type == MSGPACK_OBJECT_BIN;
    struct dt_bytes b = bin ? dt_read_bin(r, UINT32_MAX) : dt_read_str(r, UINT32_MAX);
    const void *p = bin ? o->via.bin.ptr : o->via.str.ptr;

    cr_assert_eq(b.len, bin ? o->via.bin.size : o->via.str.size);
    cr_assert(b.len == 0 || !memcmp(b.p, p, b.len));
}

static void
compare_container(struct dt_reader *r, const msgpack_object *o)
{
    uint32_t i;

    if (o->type == MSGPACK_OBJECT_ARRAY) {
        cr_assert_eq(dt_read_array(r, UINT32_MAX), o->via.array.size);
        for (i = 0; i < o->via.array.size; i++)
            compare(r, &o->via.array.ptr[i]);
        return;
    }
    cr_assert_eq(dt_read_map(r, UINT32_MAX), o->via.map.size);
    for (i = 0; i < o->via.map.size; i++) {
        compare(r, &o->via.map.ptr[i].key);
        compare(r, &o->via.map.ptr[i].val);
    }
}

static void
compare(struct dt_reader *r, const msgpack_object *o)
{
    switch (o->type) {
    case MSGPACK_OBJECT_NIL:
        cr_assert(dt_read_nil(r));
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        cr_assert_eq(dt_read_bool(r), o->via.boolean);
        break;
    case MSGPACK_OBJECT_STR:
    case MSGPACK_OBJECT_BIN:
        compare_bytes(r, o);
        break;
    case MSGPACK_OBJECT_ARRAY:
    case MSGPACK_OBJECT_MAP:
        compare_container(r, o);
        break;
    case MSGPACK_OBJECT_EXT:
        cr_assert_eq(dt_read_peek(r), DT_KIND_EXT);
        dt_read_skip(r);
        break;
    default:
        compare_number(r, o);
    }
    cr_assert_not(r->failed);
}

Test(reader, agrees_with_msgpack_c_on_random_valid_input)
{
    uint64_t state = 20240601;
    unsigned round;

    for (round = 0; round < 2000; round++) {
        msgpack_sbuffer sb;
        msgpack_packer pk;
        msgpack_unpacked u;
        struct dt_reader r;

        msgpack_sbuffer_init(&sb);
        msgpack_packer_init(&pk, &sb, msgpack_sbuffer_write);
        random_object(&pk, &state, 0);
        msgpack_unpacked_init(&u);
        cr_assert_eq(msgpack_unpack_next(&u, sb.data, sb.size, NULL), MSGPACK_UNPACK_SUCCESS);
        r = reader_on(sb.data, sb.size);
        compare(&r, &u.data);
        cr_assert_eq(r.left, 0, "round %u", round);
        r = reader_on(sb.data, sb.size);
        dt_read_skip(&r);
        cr_assert(!r.failed && r.left == 0, "skip, round %u", round);
        msgpack_unpacked_destroy(&u);
        msgpack_sbuffer_destroy(&sb);
    }
}
