/*
 * record.c - the record of exchanges: what is written is read; a file that was cut at any byte, damaged anywhere or
 * put together wrongly is told.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/train/record.h"

TestSuite(record, .timeout = 120);

enum { SLICES = 3 };

static void
make_dir(char dir[64])
{
    snprintf(dir, 64, "/tmp/psd-record-XXXXXX");
    cr_assert(mkdtemp(dir));
}

static void
remove_dir(const char *dir)
{
    char path[128];

    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    unlink(path);
    cr_expect_eq(rmdir(dir), 0);
}

static void
set(struct dtw_slice *s, uint64_t pulled0, uint64_t pulled1, uint64_t pulled2, uint64_t pushed0,
    uint64_t pushed1, uint64_t pushed2)
{
    s[0].pulled = pulled0;
    s[1].pulled = pulled1;
    s[2].pulled = pulled2;
    s[0].pushed = pushed0;
    s[1].pushed = pushed1;
    s[2].pushed = pushed2;
}

/* HEADER, SLICES, PULL, STEP, PUSH, PULL, END. */
static void
write_sample(const char *dir)
{
    struct dtw_slice s[SLICES] = {{.variable = 0, .start = 0, .n = 262144},
                                  {.variable = 0, .start = 262144, .n = 5},
                                  {.variable = 1, .start = 0, .n = 10}};
    struct dt_error err = {DT_OK, ""};
    struct record_writer *w = NULL;

    cr_assert_eq(record_create(dir, 4, &w, &err), DT_OK, "%s", err.text);
    record_write_header(w, "{\"a\":1}");
    record_write_slices(w, 77, s, SLICES);
    set(s, 7, 0, 300, DTW_NO_VERSION, DTW_NO_VERSION, DTW_NO_VERSION);
    record_write_exchange(w, RECORD_PULL, s, 0, 0x1122334455667788u);
    set(s, 10, 1, 1ull << 40, 9, 1, DTW_NO_VERSION);
    record_write_exchange(w, RECORD_STEP, s, 17, 18);
    set(s, 10, 1, 1ull << 40, DTW_NO_VERSION, 2, (1ull << 40) + 1);
    record_write_exchange(w, RECORD_PUSH, s, 19, 0);
    set(s, 9, 2, (1ull << 40) + 1, DTW_NO_VERSION, DTW_NO_VERSION, DTW_NO_VERSION);
    record_write_exchange(w, RECORD_PULL, s, 0, 20);
    record_write_end(w, RECORD_COMPLETE, true, 21);
    cr_assert_eq(record_close(w, &err), DT_OK, "%s", err.text);
}

static void
expect_next(struct record_reader *r, enum record_kind kind, struct record *out)
{
    struct dt_error err = {DT_OK, ""};

    cr_assert_eq(record_next(r, out, &err), DT_OK, "%s", err.text);
    cr_assert_eq(out->kind, kind);
}

static void
expect_versions(const uint64_t *got, uint64_t a, uint64_t b, uint64_t c)
{
    cr_assert_eq(got[0], a);
    cr_assert_eq(got[1], b);
    cr_assert_eq(got[2], c);
}

static void
expect_sample(const char *path)
{
    struct record_reader *r = NULL;
    struct dt_error err = {DT_OK, ""};
    struct record rec;

    cr_assert_eq(record_open(path, &r, &err), DT_OK, "%s", err.text);
    expect_next(r, RECORD_HEADER, &rec);
    cr_assert_eq(rec.text_bytes, 7);
    cr_assert_arr_eq(rec.text, "{\"a\":1}", 7);
    expect_next(r, RECORD_SLICES, &rec);
    cr_assert_eq(record_n_slices(r), SLICES);
    cr_assert_eq(record_first_step(r), 77);
    cr_assert_eq(record_slices(r)[1].start, 262144);
    cr_assert_eq(record_slices(r)[2].n, 10);
    expect_next(r, RECORD_PULL, &rec);
    cr_assert_eq(rec.pulled, 0x1122334455667788u);
    expect_versions(rec.held, 7, 0, 300);
    expect_next(r, RECORD_STEP, &rec);
    cr_assert(rec.pushed == 17 && rec.pulled == 18 && record_has_push(&rec));
    expect_versions(rec.made, 9, 1, DTW_NO_VERSION);
    expect_versions(rec.held, 10, 1, 1ull << 40);
    expect_next(r, RECORD_PUSH, &rec);
    cr_assert(rec.pushed == 19 && !record_has_pull(&rec));
    expect_versions(rec.made, DTW_NO_VERSION, 2, (1ull << 40) + 1);
    expect_next(r, RECORD_PULL, &rec);
    expect_versions(rec.held, 9, 2, (1ull << 40) + 1); /* back, as after a restart of psd */
    expect_next(r, RECORD_END, &rec);
    cr_assert(rec.end == RECORD_COMPLETE && rec.stopped && rec.final == 21);
    cr_assert_neq(record_next(r, &rec, &err), DT_OK);
    record_free(r);
}

Test(record, what_is_written_is_read)
{
    char dir[64], path[128];

    make_dir(dir);
    write_sample(dir);
    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    cr_assert_str_eq(strrchr(path, '/'), "/rank-4.rec");
    expect_sample(path);
    remove_dir(dir);
}

Test(record, a_file_that_is_there_is_kept)
{
    struct record_writer *w = NULL;
    struct dt_error err = {DT_OK, ""};
    char dir[64], path[128];

    make_dir(dir);
    write_sample(dir);
    cr_assert_eq(record_create(dir, 4, &w, &err), DT_E_CANT_CREATE);
    cr_assert(strstr(err.text, "there already"), "%s", err.text);
    cr_assert_null(w);
    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    expect_sample(path);
    remove_dir(dir);
}

/* The frames up to the first error or END. */
static enum dt_status
read_all(const char *path, unsigned *n, struct dt_error *err)
{
    struct record rec = {.kind = RECORD_HEADER};
    struct record_reader *r = NULL;

    *n = 0;
    enum dt_status s = record_open(path, &r, err);
    while (s == DT_OK && rec.kind != RECORD_END) {
        s = record_next(r, &rec, err);
        *n += s == DT_OK;
    }
    record_free(r);
    return s;
}

static size_t
slurp(const char *path, unsigned char *bytes, size_t max)
{
    FILE *f = fopen(path, "re");

    cr_assert(f);
    size_t n = fread(bytes, 1, max, f);
    cr_assert(n > 0 && n < max);
    fclose(f);
    return n;
}

static void
put(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "we");

    cr_assert(f);
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    cr_assert_eq(fclose(f), 0);
}

Test(record, a_cut_at_every_byte_is_told)
{
    unsigned char bytes[4096];
    struct dt_error err;
    char dir[64], path[128];
    unsigned n;

    make_dir(dir);
    write_sample(dir);
    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    size_t size = slurp(path, bytes, sizeof(bytes));
    for (size_t cut = 0; cut < size; cut++) {
        put(path, bytes, cut);
        cr_assert_eq(read_all(path, &n, &err), DT_E_DATA, "cut at %zu of %zu", cut, size);
        cr_assert(strstr(err.text, "was cut"), "cut at %zu: %s", cut, err.text);
        cr_assert(n < 7);
    }
    put(path, bytes, size);
    cr_assert_eq(read_all(path, &n, &err), DT_OK);
    cr_assert_eq(n, 7);
    remove_dir(dir);
}

Test(record, a_bit_that_flips_anywhere_is_told)
{
    unsigned char bytes[4096];
    struct dt_error err;
    char dir[64], path[128];
    unsigned n;

    make_dir(dir);
    write_sample(dir);
    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    size_t size = slurp(path, bytes, sizeof(bytes));
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        put(path, bytes, size);
        cr_assert_eq(read_all(path, &n, &err), DT_E_DATA, "bit %zu of byte %zu", bit % 8, bit / 8);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    remove_dir(dir);
}

Test(record, frames_of_another_order_and_more_behind_the_end_are_told)
{
    unsigned char bytes[4096];
    struct dt_error err;
    char dir[64], path[128];
    unsigned n;

    make_dir(dir);
    write_sample(dir);
    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    size_t size = slurp(path, bytes, sizeof(bytes));
    memmove(bytes + size, bytes + size - 19, 19); /* END twice */
    put(path, bytes, size + 19);
    cr_assert_eq(read_all(path, &n, &err), DT_E_DATA);
    cr_assert(strstr(err.text, "more follows"), "%s", err.text);
    memmove(bytes + 8 + 16, bytes + 8 + 16 + 23, size - 8 - 16 - 23); /* without SLICES */
    put(path, bytes, size - 23);
    cr_assert_eq(read_all(path, &n, &err), DT_E_DATA);
    put(path, (const unsigned char *)"DTWREC2\n", 8);
    cr_assert_eq(read_all(path, &n, &err), DT_E_DATA);
    cr_assert(strstr(err.text, "no record"), "%s", err.text);
    unlink(path);
    cr_assert_eq(read_all(path, &n, &err), DT_E_NO_INPUT);
    cr_assert_eq(read_all(dir, &n, &err), DT_E_NO_INPUT);
    remove_dir(dir);
}

Test(record, the_first_failed_write_is_told_in_the_end)
{
    struct dt_error err = {DT_OK, ""};
    struct record_writer *w = NULL;
    char dir[64], path[128];

    make_dir(dir);
    cr_assert(record_file_name(dir, 4, path, sizeof(path)));
    cr_assert_eq(symlink("/dev/full", path), 0);
    cr_assert_eq(record_create(dir, 4, &w, &err), DT_E_CANT_CREATE); /* O_EXCL follows no link */
    cr_assert_eq(record_create("/proc/no such place", 4, &w, &err), DT_E_CANT_CREATE);
    cr_assert(strstr(err.text, "/proc/no such place"), "%s", err.text);
    remove_dir(dir);
}
