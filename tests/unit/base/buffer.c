/*
 * buffer.c - growth, limit, the sticky flag.
 */
#include "proto/base/buffer.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

TestSuite(buffer, .timeout = 40);

Test(buffer, starts_empty)
{
    struct dt_buffer b = {0};

    cr_assert_str_eq(dt_buffer_str(&b), "");
    cr_assert(dt_buffer_append(&b, NULL, 0));
    cr_assert_eq(b.len, 0);
    cr_assert_str_eq(dt_buffer_str(&b), "");
    dt_buffer_deinit(&b);
}

Test(buffer, keeps_every_byte_while_it_grows)
{
    struct dt_buffer b = {0};
    unsigned i;

    for (i = 0; i < 5000; i++) {
        unsigned char c = (unsigned char)(i * 7);

        cr_assert(dt_buffer_append(&b, &c, 1));
    }
    cr_assert_eq(b.len, 5000);
    for (i = 0; i < 5000; i++)
        cr_assert_eq(b.data[i], (unsigned char)(i * 7));
    dt_buffer_deinit(&b);
    cr_assert_null(b.data);
}

Test(buffer, string_at_each_length)
{
    struct dt_buffer b = {0};
    size_t i;

    for (i = 1; i < 300; i++) {
        cr_assert(dt_buffer_append(&b, "x", 1));
        cr_assert_eq(strlen(dt_buffer_str(&b)), i);
    }
    dt_buffer_deinit(&b);
}

Test(buffer, printf_appends)
{
    struct dt_buffer b = {0};

    cr_assert(dt_buffer_append(&b, "a=", 2));
    cr_assert(dt_buffer_printf(&b, "%d %s", 12, "bc"));
    cr_assert_str_eq(dt_buffer_str(&b), "a=12 bc");
    cr_assert(dt_buffer_printf(&b, "%500d", 1));
    cr_assert_eq(b.len, 507);
    cr_assert_eq(b.data[506], '1');
    dt_buffer_deinit(&b);
}

Test(buffer, limit_is_exact_and_failure_is_sticky)
{
    struct dt_buffer b = {.limit = 10};

    cr_assert(dt_buffer_append(&b, "0123456", 7));
    cr_assert(dt_buffer_append(&b, "789", 3));
    cr_assert_not(b.failed);
    cr_assert_not(dt_buffer_append(&b, "x", 1));
    cr_assert(b.failed);
    cr_assert_str_eq(dt_buffer_str(&b), "0123456789");
    cr_assert_not(dt_buffer_append(&b, NULL, 0));
    dt_buffer_clear(&b);
    cr_assert_not(b.failed);
    cr_assert(dt_buffer_printf(&b, "%s", "again"));
    cr_assert_not(dt_buffer_printf(&b, "%s", "123456"));
    cr_assert_str_eq(dt_buffer_str(&b), "again");
    dt_buffer_deinit(&b);
}

Test(buffer, absurd_lengths_are_refused)
{
    struct dt_buffer b = {0};

    cr_assert_not(dt_buffer_append(&b, "x", SIZE_MAX));
    cr_assert(b.failed);
    cr_assert_eq(b.len, 0);
    dt_buffer_deinit(&b);
}
