/*
 * partition.c - how many parts, and which rows each has: TensorFlow's partitioners.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "worker/lib/partition.h"

TestSuite(partition, .timeout = 20);

static struct partition
parse(const char *text)
{
    struct partition p;
    struct dtw_error err = {DTW_OK, ""};

    cr_assert_eq(partition_parse(text, &p, &err), DTW_OK, "%s: %s", text, err.text);
    return p;
}

struct want {
    const char *how;
    uint64_t d, elements, parts;
};

static void
expect(const struct want *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct partition p = parse(w[i].how);

        cr_assert_eq(partition_count(&p, w[i].d, w[i].elements), w[i].parts, "%s of %lu rows: %lu",
                     w[i].how, w[i].d, partition_count(&p, w[i].d, w[i].elements));
    }
}

Test(partition, fixed_has_at_most_a_part_a_row)
{
    static const struct want w[] = {{"fixed:3", 10, 100, 3}, {"fixed:3", 2, 2, 2},
                                    {"fixed:1", 10, 100, 1}, {"fixed:4096", 4096, 4096, 4096},
                                    {"none", 10, 100, 1},    {"fixed:7", 1, 1000000, 1}};

    expect(w, sizeof(w) / sizeof(w[0]));
}

/* [4, 8] float32: 32 bytes a row. */
Test(partition, axis_size_fills_parts_up_to_the_bytes)
{
    static const struct want w[] = {
        {"axis-size:80", 4, 32, 2},   /* 2 rows a part */
        {"axis-size:63", 4, 32, 4},   /* 1 row */
        {"axis-size:1", 4, 32, 4},    /* a row is never cut */
        {"axis-size:96", 4, 32, 2},   /* 3 and 1 by size; split 2 and 2 */
        {"axis-size:80:1", 4, 32, 1}, /* at most one part */
        {"axis-size:1:3", 4, 32, 3},
        {"axis-size:1KiB", 1000, 8000, 32}, /* 32 rows a part: 31.25 parts */
        {"axis-size:64KiB", 4, 32, 1},
    };

    expect(w, sizeof(w) / sizeof(w[0]));
}

Test(partition, min_max_keeps_parts_of_the_least_bytes)
{
    static const struct want w[] = {
        {"min-max:4", 784, 7840, 1},      /* 31 360 bytes */
        {"min-max:4", 1024, 1u << 18, 4}, /* 1 MiB in parts of 256 KiB */
        {"min-max:100", 1024, 1u << 18, 4},
        {"min-max:100", 1024, (1u << 18) + 1024, 5}, /* rounded up */
        {"min-max:100", 3, 3u << 20, 3},             /* a part a row at most */
        {"min-max:8:1KiB", 784, 7840, 8},
        {"min-max:100:1024", 784, 7840, 31},
    };

    expect(w, sizeof(w) / sizeof(w[0]));
}

Test(partition, the_first_parts_have_a_row_more)
{
    static const struct partition_run want[] = {{0, 3}, {3, 3}, {6, 2}, {8, 2}};

    for (unsigned k = 0; k < 4; k++) {
        struct partition_run run = partition_split(10, 4, k);

        cr_assert_eq(run.start, want[k].start);
        cr_assert_eq(run.n, want[k].n);
    }
}

Test(partition, parts_cover_all_rows_in_order)
{
    for (uint64_t d = 1; d < 60; d++) {
        for (uint64_t parts = 1; parts <= d; parts++) {
            uint64_t at = 0;

            for (uint64_t k = 0; k < parts; k++) {
                struct partition_run run = partition_split(d, parts, k);

                cr_assert_eq(run.start, at);
                cr_assert(run.n == d / parts || run.n == d / parts + 1);
                at += run.n;
            }
            cr_assert_eq(at, d);
        }
    }
}

Test(partition, what_is_none_of_them_is_told)
{
    static const char *const bad[] = {
        "",
        "fixed",
        "fixed:",
        "fixed:0",
        "fixed:-1",
        "fixed:4097",
        "fixed:1:2",
        "fixed:3x",
        "none:1",
        "axis-size",
        "axis-size:0",
        "axis-size:1:0",
        "axis-size:1:2:3",
        "min-max:2:0",
        "min-max",
        "min-max:2:1:1",
        "variable:2",
        "fixed:1:",
        "Fixed:2",
        "fixed:00000000000000000000000000000000000000000000000000000000001"};

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct partition p = {PARTITION_FIXED, 7, 7};
        struct dtw_error err = {DTW_OK, ""};

        cr_assert_eq(partition_parse(bad[i], &p, &err), DTW_INVALID, "%s", bad[i]);
        cr_assert(strstr(err.text, "fixed:N"), "%s", err.text);
        cr_assert_eq(p.max_parts, 7);
    }
}

Test(partition, names_are_tensorflows)
{
    char name[15];

    cr_assert(partition_name("kernel", 12, name, sizeof(name)));
    cr_assert_str_eq(name, "kernel/part_12");
    cr_assert_not(partition_name("kernel", 123, name, sizeof(name)));
}
