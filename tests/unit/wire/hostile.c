/*
 * hostile.c - damaged messages: every truncation, every changed byte, absurd counts, deep nesting.
 * The input lies in memory of exactly its size, so that a sanitizer sees each step too far.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/samples.h"

TestSuite(hostile, .timeout = 240);

/* Decodes a copy in a block of its own. */
static enum dt_status
decode_copy(enum decoder decoder, const unsigned char *data, size_t bytes)
{
    unsigned char *copy = malloc(bytes ? bytes : 1);
    enum dt_status status;

    cr_assert_not_null(copy);
    if (bytes)
        memcpy(copy, data, bytes);
    status = samples_decode(decoder, copy, bytes);
    free(copy);
    return status;
}

Test(hostile, whole_samples_are_accepted)
{
    struct samples *s = malloc(sizeof(*s));
    unsigned i;

    samples_create(s);
    cr_assert_gt(s->n, 35);
    for (i = 0; i < s->n; i++)
        cr_assert_eq(decode_copy(s->list[i].decoder, s->list[i].bytes.data, s->list[i].bytes.len),
                     DT_OK, "%s", s->list[i].name);
    samples_deinit(s);
    free(s);
}

Test(hostile, every_truncation_is_refused)
{
    struct samples *s = malloc(sizeof(*s));
    unsigned i;
    size_t n;

    samples_create(s);
    for (i = 0; i < s->n; i++) {
        for (n = 0; n < s->list[i].bytes.len; n++)
            cr_assert_eq(decode_copy(s->list[i].decoder, s->list[i].bytes.data, n), DT_R_MALFORMED,
                         "%s cut to %zu bytes", s->list[i].name, n);
    }
    samples_deinit(s);
    free(s);
}

Test(hostile, a_byte_behind_a_message_is_refused)
{
    struct samples *s = malloc(sizeof(*s));
    unsigned i;

    samples_create(s);
    for (i = 0; i < s->n; i++) {
        struct dt_buffer *b = &s->list[i].bytes;

        cr_assert(dt_buffer_append(b, "\x01", 1));
        cr_assert_eq(decode_copy(s->list[i].decoder, b->data, b->len), DT_R_MALFORMED, "%s",
                     s->list[i].name);
    }
    samples_deinit(s);
    free(s);
}

static void
flip_everywhere(const struct sample *sample, const unsigned char *masks, unsigned n_masks)
{
    unsigned char *p = sample->bytes.data;
    size_t i;
    unsigned k;

    for (i = 0; i < sample->bytes.len; i++) {
        for (k = 0; k < n_masks; k++) {
            p[i] ^= masks[k];
            decode_copy(sample->decoder, p, sample->bytes.len);
            p[i] ^= masks[k];
        }
    }
}

Test(hostile, no_changed_byte_breaks_a_decoder)
{
    static const unsigned char masks[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40,
                                          0x80, 0xff, 0x7f, 0x0f, 0xf0, 0x03};
    struct samples *s = malloc(sizeof(*s));
    unsigned i;

    samples_create(s);
    for (i = 0; i < s->n; i++)
        flip_everywhere(&s->list[i], masks, sizeof(masks));
    samples_deinit(s);
    free(s);
}

/* Every byte becomes the lead of a container or a string of 2^32-1. */
Test(hostile, absurd_counts_are_refused)
{
    static const unsigned char leads[] = {0xdd, 0xdf, 0xdb, 0xc6, 0xc9};
    struct samples *s = malloc(sizeof(*s));
    unsigned i, k;
    size_t at;

    samples_create(s);
    for (i = 0; i < s->n; i++) {
        const struct dt_buffer *b = &s->list[i].bytes;

        for (at = 0; at < b->len; at += 1 + at / 64) {
            for (k = 0; k < sizeof(leads); k++) {
                struct dt_buffer damaged = {0};
                unsigned char absurd[5] = {leads[k], 0xff, 0xff, 0xff, 0xff};

                dt_buffer_append(&damaged, b->data, at);
                dt_buffer_append(&damaged, absurd, sizeof(absurd));
                dt_buffer_append(&damaged, b->data + at, b->len - at);
                decode_copy(s->list[i].decoder, damaged.data, damaged.len);
                dt_buffer_deinit(&damaged);
            }
        }
    }
    for (k = 0; k < sizeof(leads); k++) {
        unsigned char absurd[6] = {leads[k], 0xff, 0xff, 0xff, 0xff, 0};

        for (i = 0; i < N_DECODERS; i++)
            cr_assert_eq(decode_copy((enum decoder)i, absurd, 6), DT_R_MALFORMED);
    }
    samples_deinit(s);
    free(s);
}

Test(hostile, nesting_beyond_16_is_refused)
{
    size_t bytes = 100000;
    unsigned char *deep = malloc(bytes);
    unsigned i;

    memset(deep, 0x91, bytes);
    for (i = 0; i < N_DECODERS; i++) {
        cr_assert_eq(decode_copy((enum decoder)i, deep, bytes), DT_R_MALFORMED);
        cr_assert_eq(decode_copy((enum decoder)i, deep, 4000), DT_R_MALFORMED);
    }
    deep[17] = 0xc0;
    cr_assert_eq(decode_copy(DECODE_SKIP, deep, 18), DT_R_MALFORMED, "17 levels");
    deep[16] = 0xc0;
    cr_assert_eq(decode_copy(DECODE_SKIP, deep, 17), DT_OK, "16 levels");
    free(deep);
}

Test(hostile, headers_above_4096_bytes_are_refused)
{
    struct dt_buffer b = {0};
    static char filler[DT_MAX_HEADER_BYTES];
    struct dt_head head;

    dt_head_request(&b, DT_OP_STATS, 1, 2, 1);
    dt_write_bin(&b, filler, (uint32_t)(DT_MAX_HEADER_BYTES - b.len - 3));
    cr_assert_eq(b.len, DT_MAX_HEADER_BYTES);
    cr_assert_eq(dt_head_decode(&head, b.data, b.len), DT_OK);
    dt_buffer_clear(&b);
    dt_head_request(&b, DT_OP_STATS, 1, 2, 1);
    dt_write_bin(&b, filler, (uint32_t)(DT_MAX_HEADER_BYTES - b.len - 2));
    cr_assert_eq(b.len, DT_MAX_HEADER_BYTES + 1);
    cr_assert_eq(dt_head_decode(&head, b.data, b.len), DT_R_MALFORMED);
    dt_buffer_deinit(&b);
}
