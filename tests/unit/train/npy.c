/*
 * npy.c - NumPy arrays as .npy files and in .npz archives: right values; every cut, every flipped byte
 * and every lie of a header told in one line.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>

#include "tests/unit/train/scratch.h"
#include "worker/train/dataset.h"
#include "worker/train/npy.h"

TestSuite(npy, .timeout = 240);
TestSuite(npz, .timeout = 240);

struct files {
    struct scratch dir;
    struct dt_buffer x; /* the array's file: float32 [3, 2, 2] = 0, .5, 1, ... 5.5 */
    struct dt_buffer y; /* int64 [3] = 2, 0, 1 */
    struct dataset train;
    struct dataset test;
    struct dt_error err;
};

static void
make_npy(struct dt_buffer *out, const char *descr, const char *shape, const void *data, size_t len)
{
    char header[256];
    int n = snprintf(header, sizeof(header),
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);

    while ((10 + n + 1) % 64 != 0)
        header[n++] = ' ';
    header[n++] = '\n';
    unsigned char first[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, 0};
    dt_buffer_clear(out);
    dt_buffer_append(out, first, sizeof(first));
    dt_buffer_append(out, header, (size_t)n);
    dt_buffer_append(out, data, len);
}

static void
files_make(struct files *f)
{
    static const int64_t y[] = {2, 0, 1};
    float x[12];

    memset(f, 0, sizeof(*f));
    scratch_open(&f->dir);
    for (int i = 0; i < 12; i++)
        x[i] = (float)i / 2;
    make_npy(&f->x, "<f4", "(3, 2, 2)", x, sizeof(x));
    make_npy(&f->y, "<i8", "(3,)", y, sizeof(y));
}

static void
files_remove(struct files *f)
{
    dataset_deinit(&f->train);
    dataset_deinit(&f->test);
    dt_buffer_deinit(&f->x);
    dt_buffer_deinit(&f->y);
    scratch_close(&f->dir);
}

static enum dt_status
load_npy(struct files *f)
{
    dataset_deinit(&f->train);
    dataset_deinit(&f->test);
    write_file(scratch_path(&f->dir, "x_train.npy"), f->x.data, f->x.len);
    write_file(scratch_path(&f->dir, "y_train.npy"), f->y.data, f->y.len);
    return dataset_load(f->dir.dir, &f->train, &f->test, &f->err);
}

static void
expect_values(const struct dataset *d)
{
    static const uint32_t y[] = {2, 0, 1};

    cr_assert_eq(d->n_rows, 3);
    cr_assert_eq(d->n_features, 4);
    cr_expect(d->n_dims == 2 && d->dims[0] == 2 && d->dims[1] == 2);
    cr_expect_eq(d->n_classes, 3);
    cr_expect_eq(d->scale, 1.0f);
    for (int i = 0; i < 12; i++)
        cr_expect_eq(d->x[i], (float)i / 2, "value %d", i);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(d->y[i], y[i], "label %d", i);
}

static void
expect_refused(struct files *f, enum dt_status s, const char *name, const char *word)
{
    cr_assert_eq(s, DT_E_DATA, "%s", f->err.text);
    cr_assert_not_null(strstr(f->err.text, name), "'%s' is not in: %s", name, f->err.text);
    cr_assert_not_null(strstr(f->err.text, word), "'%s' is not in: %s", word, f->err.text);
    cr_assert_null(strchr(f->err.text, '\n'));
    cr_assert_null(f->train.x);
    cr_assert_null(f->test.x);
}

Test(npy, a_directory_of_arrays)
{
    struct files f;
    struct dt_buffer packed = {0};
    char text[1024];

    files_make(&f);
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    expect_values(&f.train);
    cr_expect_eq(f.test.n_rows, 0);
    pack(&packed, f.x.data, f.x.len);
    write_file(scratch_path(&f.dir, "x_test.npy.gz"), packed.data, packed.len);
    write_file(scratch_path(&f.dir, "y_test.npy"), f.y.data, f.y.len);
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    expect_values(&f.test);
    cr_assert_eq(dataset_check(f.dir.dir, text, sizeof(text), &f.err), DT_OK);
    cr_expect_not_null(strstr(text, "x_test.npy.gz: gzip NumPy array, 3 rows of 2x2 values (4 "
                                    "features)\n"),
                       "%s", text);
    cr_expect_not_null(strstr(text, "3 labels of 3 classes, 1 to 1 rows a class\n"), "%s", text);
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

Test(npy, number_types)
{
    static const unsigned char bytes[] = {0, 51, 255};
    static const double doubles[] = {0.1, -2e30, 3};
    static const int32_t ints[] = {-7, 2147483647, 0};
    static const int64_t longs[] = {-7, INT64_C(1) << 40, 0};
    static const float floats[] = {2, 0, 1};
    struct files f;

    files_make(&f);
    make_npy(&f.y, "<f4", "(3, 1)", floats, sizeof(floats));
    make_npy(&f.x, "|u1", "(3, 1)", bytes, sizeof(bytes));
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    cr_expect_float_eq(f.train.x[1], .2f, 1e-7f);
    cr_expect_eq(f.train.scale, 1.0f / 255);
    cr_expect_eq(f.train.y[0], 2);
    make_npy(&f.x, "<f8", "(3, 1)", doubles, sizeof(doubles));
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    cr_expect(f.train.x[0] == .1f && f.train.x[1] == -2e30f && f.train.scale == 1.0f);
    make_npy(&f.x, "<i4", "(3, 1)", ints, sizeof(ints));
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    cr_expect(f.train.x[0] == -7 && f.train.x[1] == 2147483648.0f);
    make_npy(&f.x, "<i8", "(3L, 1L)", longs, sizeof(longs));
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    cr_expect(f.train.x[0] == -7 && f.train.x[1] == 0x1p40f);
    files_remove(&f);
}

Test(npy, format_two)
{
    struct files f;
    unsigned char wide[] = {2, 0, 0, 0, 0, 0};

    files_make(&f);
    struct dt_buffer b = {0};
    wide[2] = f.x.data[8];
    dt_buffer_append(&b, f.x.data, 6);
    dt_buffer_append(&b, wide, 6);
    dt_buffer_append(&b, f.x.data + 10, f.x.len - 10);
    dt_buffer_deinit(&f.x);
    f.x = b;
    cr_assert_eq(load_npy(&f), DT_OK, "%s", f.err.text);
    expect_values(&f.train);
    f.x.data[6] = 3;
    expect_refused(&f, load_npy(&f), "x_train.npy", "of format 3.0");
    f.x.data[6] = 2;
    f.x.data[11] = 1;
    expect_refused(&f, load_npy(&f), "x_train.npy", "its header claims");
    files_remove(&f);
}

Test(npy, numbers_to_predict_and_labels_that_are_no_classes)
{
    static const double y[] = {.5, -1, 3};
    static const double nan_[] = {0, 1, NAN};
    struct files f;
    struct dataset_options o = {.target = DATASET_NUMBERS};

    files_make(&f);
    make_npy(&f.y, "<f8", "(3,)", y, sizeof(y));
    expect_refused(&f, load_npy(&f), "y_train.npy",
                   "row 0 (from 0) holds the label 0.5, which is not a whole number");
    cr_assert_eq(dataset_load_with(&o, f.dir.dir, &f.train, &f.test, &f.err), DT_OK);
    cr_expect(f.train.t && f.train.t[0] == .5f && f.train.t[1] == -1 && !f.train.y);
    make_npy(&f.y, "<f8", "(3,)", nan_, sizeof(nan_));
    expect_refused(&f, load_npy(&f), "y_train.npy", "row 2 (from 0) holds the label nan");
    expect_refused(&f, dataset_load_with(&o, f.dir.dir, &f.train, &f.test, &f.err), "y_train.npy",
                   "row 2 (from 0) holds the label nan, which is not finite");
    files_remove(&f);
}

Test(npy, values_that_are_not_finite)
{
    static const double bad[] = {NAN, INFINITY, 1e300};
    struct files f;

    files_make(&f);
    for (int i = 0; i < 3; i++) {
        double x[6] = {1, 2, 3, bad[i], 5, 6};
        make_npy(&f.x, "<f8", "(3, 2)", x, sizeof(x));
        expect_refused(&f, load_npy(&f), "x_train.npy", "row 1, feature 1 (from 0) holds");
    }
    files_remove(&f);
}

struct claim {
    const char *descr;
    const char *shape;
    const char *word;
};

/* 48 bytes of data are there in each case. */
Test(npy, headers_that_are_refused)
{
    static const struct claim bad[] = {
        {"|O", "(3, 2)", "Python objects (a pickle)"},
        {">f4", "(3, 4)", "big-endian"},
        {"<f2", "(3, 8)", "type <f2 is not read"},
        {"<c8", "(3, 2)", "type <c8 is not read"},
        {"<U4", "(3,)", "type <U4 is not read"},
        {"<f4", "(3, 5)", "its header claims 188"},
        {"<f4", "(3, 3)", "its header claims 164"},
        {"<f4", "(46341, 46341)", "its header claims 8589953252"},    /* passes 2^31 */
        {"<f4", "(65536, 65537)", "its header claims 17180131456"},   /* passes 2^32 */
        {"|u1", "(4294967296, 2147483649)", "claims more than 2^48"}, /* passes 2^63 */
        {"|u1", "(4294967296, 4294967297)", "claims more than 2^48"}, /* 2^64 + 2^32 */
        {"<f4", "(18446744073709551615, 3)", "claims more than 2^48"},
        {"<f8", "(2305843009213693955, 2)", "claims more than 2^48"}, /* 8 * it = 24 mod 2^64 */
        {"<f4", "(18446744073709551616, 3)", "size 1 of its shape is no number below 2^64"},
        {"<f4", "(-3, 4)", "size 1 of its shape is no number"},
        {"<f4", "(0, 4)", "size 1 of its shape is 0"},
        {"<f4", "(3, 0)", "size 2 of its shape is 0"},
        {"<f4", "(12,)", "has 1 dimensions"},
        {"<f4", "(3, 1, 1, 1, 2, 2)", "more than 5 dimensions"},
        {"<f4", "(4, 3)", "4 rows, but"},
        {"<f4", "(3 4)", "no dictionary"},
        {"<f4", "3, 4", "no dictionary"},
        {"<f4", "(3, 4), 'more': 1", "no dictionary"},
        {"<f4", "(3, 4), 'shape': (3, 4)", "no dictionary"},
        {"<f4", "(3, 4)} + {", "no dictionary"},
        {"<f4\\", "(3, 4)", "no dictionary"},
    };
    static const float data[12] = {0};
    struct files f;

    files_make(&f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        make_npy(&f.x, bad[i].descr, bad[i].shape, data, sizeof(data));
        expect_refused(&f, load_npy(&f), "x_train.npy", bad[i].word);
    }
    files_remove(&f);
}

Test(npy, headers_in_other_words)
{
    static const char *const good[] = {
        "{\"shape\":(3,4),\"descr\":\"<f4\",\"fortran_order\":False}",
        "  { 'fortran_order' : False , 'shape' : ( 3 , 4 , ) , 'descr' : '<f4' , }  \n",
    };
    static const char *const bad[] = {
        "",
        "{}",
        "{'descr': '<f4', 'shape': (3, 4)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (3, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (3, 4)}",
        "['descr', '<f4']",
    };
    struct npy_header h;
    struct dt_error err;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        memset(&h, 0, sizeof(h));
        cr_assert_eq(npy_parse_header("f", good[i], &h, &err), DT_OK, "%s", err.text);
        cr_expect(h.type == NPY_F4 && h.n_dims == 2 && h.dims[0] == 3 && h.dims[1] == 4);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect_eq(npy_parse_header("f", bad[i], &h, &err), DT_E_DATA, "%s", bad[i]);
    cr_expect_eq(npy_parse_header("f", bad[4], &h, &err), DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "Fortran order"), "%s", err.text);
    cr_expect_eq(npy_parse_header("f", bad[5], &h, &err), DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "structures"), "%s", err.text);
}

Test(npy, every_cut_plain_and_before_packing)
{
    struct files f;

    files_make(&f);
    struct dt_buffer whole = f.x;
    for (size_t n = 0; n < whole.len; n++) {
        f.x = whole;
        f.x.len = n;
        expect_refused(&f, load_npy(&f), "x_train.npy", n < 128 ? "ends at offset" : "claims 176");
        f.x = (struct dt_buffer){0};
        pack(&f.x, whole.data, n);
        expect_refused(&f, load_npy(&f), "x_train.npy", "ends at offset");
        dt_buffer_deinit(&f.x);
    }
    f.x = whole;
    dt_buffer_append(&f.x, "x", 1);
    expect_refused(&f, load_npy(&f), "x_train.npy", "has 177 bytes, its header claims 176");
    struct dt_buffer longer = {0};
    pack(&longer, f.x.data, f.x.len);
    dt_buffer_deinit(&f.x);
    f.x = longer;
    expect_refused(&f, load_npy(&f), "x_train.npy", "goes on after offset 176");
    files_remove(&f);
}

Test(npy, missing_and_other_files)
{
    struct files f;

    files_make(&f);
    load_npy(&f);
    remove(scratch_path(&f.dir, "y_train.npy"));
    dataset_deinit(&f.train);
    cr_expect_eq(dataset_load(f.dir.dir, &f.train, &f.test, &f.err), DT_E_NO_INPUT);
    cr_expect_not_null(strstr(f.err.text, "y_train.npy"), "%s", f.err.text);
    cr_expect_eq(dataset_load(scratch_path(&f.dir, "x_train.npy"), &f.train, &f.test, &f.err),
                 DT_E_NO_INPUT);
    cr_expect_not_null(strstr(f.err.text, "is one array"), "%s", f.err.text);
    load_npy(&f);
    dataset_deinit(&f.train);
    write_file(scratch_path(&f.dir, "train.csv"), "1,0\n", 4);
    expect_refused(&f, dataset_load(f.dir.dir, &f.train, &f.test, &f.err), f.dir.dir,
                   "holds train.csv and x_train.npy");
    remove(scratch_path(&f.dir, "train.csv"));
    cr_expect_eq(dataset_load_with(&(struct dataset_options){.label = "1"}, f.dir.dir, &f.train,
                                   &f.test, &f.err),
                 DT_E_USAGE);
    dt_buffer_clear(&f.x);
    dt_buffer_append(&f.x, "\x80\x04\x95\x10\0\0\0\0", 8);
    expect_refused(&f, load_npy(&f), "x_train.npy", "starts with 80 04");
    files_remove(&f);
}

/* A zip archive under construction. */
struct archive {
    struct dt_buffer data;
    struct dt_buffer directory;
    unsigned n;
    unsigned method;  /* of the next member */
    unsigned flags;   /* of the next member */
    bool marked;      /* sizes of the local header in a zip64 field, as numpy.savez writes them */
    unsigned claimed; /* unpacked size of the next member; 0: the right one */
};

static void
put(struct dt_buffer *b, unsigned bytes, uint64_t v)
{
    unsigned char raw[8];

    for (unsigned i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(v >> 8 * i);
    dt_buffer_append(b, raw, bytes);
}

static void
put_fields(struct dt_buffer *b, const struct archive *a, unsigned crc, uint64_t packed,
           uint64_t bytes)
{
    put(b, 2, a->flags);
    put(b, 2, a->method);
    put(b, 4, 0); /* time */
    put(b, 4, crc);
    put(b, 4, packed);
    put(b, 4, bytes);
}

/* `in` as raw deflate data. */
static void
deflate_raw(struct dt_buffer *out, const struct dt_buffer *in)
{
    unsigned char part[4096];
    z_stream z = {0};

    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = in->data;
    z.avail_in = (unsigned)in->len;
    z.next_out = part;
    z.avail_out = sizeof(part);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    dt_buffer_append(out, part, sizeof(part) - z.avail_out);
    deflateEnd(&z);
}

static void
archive_add(struct archive *a, const char *name, const struct dt_buffer *content)
{
    unsigned crc = (unsigned)crc32(0, content->data, (unsigned)content->len);
    uint64_t bytes = a->claimed ? a->claimed : content->len;
    struct dt_buffer packed = {0};
    size_t offset = a->data.len;

    if (a->method == 8)
        deflate_raw(&packed, content);
    else
        dt_buffer_append(&packed, content->data, content->len);
    dt_buffer_append(&a->data, "PK\3\4\x2d\0", 6);
    put_fields(&a->data, a, crc, a->marked ? 0xffffffff : packed.len,
               a->marked ? 0xffffffff : bytes);
    put(&a->data, 2, strlen(name));
    put(&a->data, 2, a->marked ? 20 : 0);
    dt_buffer_append(&a->data, name, strlen(name));
    if (a->marked) {
        put(&a->data, 4, 0x100001);
        put(&a->data, 8, bytes);
        put(&a->data, 8, packed.len);
    }
    dt_buffer_append(&a->data, packed.data, packed.len);
    dt_buffer_append(&a->directory, "PK\1\2\x2d\3\x2d\0", 8);
    put_fields(&a->directory, a, crc, packed.len, bytes);
    put(&a->directory, 2, strlen(name));
    put(&a->directory, 8, 0); /* extra, comment, part, internal attributes */
    put(&a->directory, 4, 0);
    put(&a->directory, 4, offset);
    dt_buffer_append(&a->directory, name, strlen(name));
    dt_buffer_deinit(&packed);
    a->n++;
}

/* The whole file; the archive then is empty again. */
static void
archive_end(struct archive *a, struct dt_buffer *out)
{
    dt_buffer_clear(out);
    dt_buffer_append(out, a->data.data, a->data.len);
    dt_buffer_append(out, a->directory.data, a->directory.len);
    dt_buffer_append(out, "PK\5\6\0\0\0\0", 8);
    put(out, 2, a->n);
    put(out, 2, a->n);
    put(out, 4, a->directory.len);
    put(out, 4, a->data.len);
    put(out, 2, 0);
    dt_buffer_deinit(&a->data);
    dt_buffer_deinit(&a->directory);
    memset(a, 0, sizeof(*a));
}

static enum dt_status
load_npz(struct files *f, const struct dt_buffer *b)
{
    const char *path = scratch_path(&f->dir, "data.npz");

    dataset_deinit(&f->train);
    dataset_deinit(&f->test);
    write_file(path, b->data, b->len);
    return dataset_load(path, &f->train, &f->test, &f->err);
}

/* Training rows, and test rows with `both`. */
static void
make_npz(const struct files *f, unsigned method, bool marked, bool both, struct dt_buffer *out)
{
    struct archive a = {.method = method, .marked = marked};

    archive_add(&a, "x_train.npy", &f->x);
    archive_add(&a, "y_train.npy", &f->y);
    if (both) {
        archive_add(&a, "y_test.npy", &f->y);
        archive_add(&a, "x_test.npy", &f->x);
    }
    archive_end(&a, out);
}

Test(npz, stored_and_deflated_with_and_without_test_rows)
{
    struct files f;
    struct dt_buffer b = {0};

    files_make(&f);
    for (unsigned i = 0; i < 8; i++) {
        make_npz(&f, i & 1 ? 8 : 0, i & 2, i & 4, &b);
        cr_assert_eq(load_npz(&f, &b), DT_OK, "%s", f.err.text);
        expect_values(&f.train);
        cr_expect_eq(f.test.n_rows, i & 4 ? 3 : 0);
        if (i & 4)
            expect_values(&f.test);
    }
    char text[1024];
    cr_assert_eq(dataset_check(scratch_path(&f.dir, "data.npz"), text, sizeof(text), &f.err),
                 DT_OK);
    cr_expect_not_null(strstr(text, "data.npz: x_test, 3 rows of 2x2 values (4 features); y_test, "
                                    "3 labels of 3 classes"),
                       "%s", text);
    dt_buffer_deinit(&b);
    files_remove(&f);
}

Test(npz, sizes_that_follow_the_data_and_a_comment)
{
    struct files f;
    struct dt_buffer b = {0};
    struct archive a = {.flags = 8, .method = 8};

    files_make(&f);
    archive_add(&a, "x_train.npy", &f.x);
    archive_add(&a, "y_train.npy", &f.y);
    memset(a.data.data + 14, 0, 12); /* check sum and sizes of the first local header */
    archive_end(&a, &b);
    b.data[b.len - 2] = 5;
    dt_buffer_append(&b, "hello", 5);
    cr_assert_eq(load_npz(&f, &b), DT_OK, "%s", f.err.text);
    expect_values(&f.train);
    dt_buffer_deinit(&b);
    files_remove(&f);
}

Test(npz, every_cut)
{
    struct files f;
    struct dt_buffer b = {0};

    files_make(&f);
    for (unsigned method = 0; method <= 8; method += 8) {
        make_npz(&f, method, true, true, &b);
        size_t whole = b.len;
        for (size_t n = 0; n < whole; n++) {
            b.len = n;
            expect_refused(&f, load_npz(&f, &b), "data.npz",
                           n == 0   ? "is empty"
                           : n < 22 ? "too few"
                                    : "does not end as a zip archive");
        }
        b.len = whole;
    }
    dt_buffer_append(&b, "x", 1);
    expect_refused(&f, load_npz(&f, &b), "data.npz", "does not end as");
    dt_buffer_deinit(&b);
    files_remove(&f);
}

/* Bytes that mean nothing here: versions, times, attributes. */
static bool
idle(const struct dt_buffer *b, size_t at)
{
    for (size_t i = at < 46 ? 0 : at - 46; i <= at; i++) {
        size_t k = at - i;
        if (memcmp(b->data + i, "PK\3\4", 4) == 0 && ((k >= 4 && k < 6) || (k >= 10 && k < 14)))
            return true;
        if (memcmp(b->data + i, "PK\1\2", 4) == 0 &&
            ((k >= 4 && k < 8) || (k >= 12 && k < 16) || (k >= 34 && k < 42)))
            return true;
    }
    return false;
}

Test(npz, every_flipped_byte_is_noticed_or_harmless)
{
    struct files f;
    struct dt_buffer b = {0};

    files_make(&f);
    for (unsigned method = 0; method <= 8; method += 8) {
        make_npz(&f, method, true, false, &b);
        for (size_t n = 0; n < b.len; n++) {
            bool harmless = idle(&b, n);
            b.data[n] ^= 0x41;
            enum dt_status s = load_npz(&f, &b);
            if (s == DT_OK)
                expect_values(&f.train);
            cr_expect(s == DT_E_DATA || (s == DT_OK && harmless), "byte %zu of method %u: %s", n,
                      method, f.err.text);
            b.data[n] ^= 0x41;
        }
    }
    dt_buffer_deinit(&b);
    files_remove(&f);
}

static long
peak_kib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* Header and directory agree that 3 GB are there. */
Test(npz, a_lying_directory_costs_no_memory)
{
    static const float data[12] = {0};
    struct files f;
    struct dt_buffer b = {0};
    struct archive a = {.method = 8};

    files_make(&f);
    make_npy(&f.x, "<f4", "(3, 250000000)", data, sizeof(data));
    long before = peak_kib();
    a.claimed = 3000000128u;
    archive_add(&a, "x_train.npy", &f.x);
    a.claimed = 0;
    archive_add(&a, "y_train.npy", &f.y);
    archive_end(&a, &b);
    expect_refused(&f, load_npz(&f, &b), "x_train.npy", "cannot unpack from");
    a.method = 0;
    a.claimed = 3000000128u;
    archive_add(&a, "x_train.npy", &f.x);
    a.claimed = 0;
    archive_add(&a, "y_train.npy", &f.y);
    archive_end(&a, &b);
    expect_refused(&f, load_npz(&f, &b), "x_train.npy", "cannot unpack from");
    cr_expect_lt(peak_kib() - before, 64 * 1024);
    dt_buffer_deinit(&b);
    files_remove(&f);
}

/* The archive of one member `name`, made by `a`. */
static void
expect_member_refused(struct files *f, struct archive a, const char *name, const char *word)
{
    struct dt_buffer b = {0};

    archive_add(&a, name, &f->x);
    archive_end(&a, &b);
    expect_refused(f, load_npz(f, &b), "data.npz", word);
    dt_buffer_deinit(&b);
}

Test(npz, members_that_are_refused)
{
    struct files f;

    files_make(&f);
    expect_member_refused(&f, (struct archive){0}, "x.npy", "holds no array x_train");
    expect_member_refused(&f, (struct archive){0}, "x_train.npy", "holds no array y_train");
    expect_member_refused(&f, (struct archive){.flags = 1}, "x_train.npy", "is encrypted");
    expect_member_refused(&f, (struct archive){.method = 14}, "x_train.npy", "packed by method 14");
    expect_member_refused(&f, (struct archive){.claimed = 0xffffffff}, "x_train.npy", "zip64");
    expect_member_refused(&f, (struct archive){.method = 8, .claimed = 177}, "a", "holds no array");
    expect_member_refused(&f, (struct archive){0}, "", "no name of 1 to 63");
    expect_member_refused(&f, (struct archive){0}, "x\ny", "no name of 1 to 63");
    files_remove(&f);
}

Test(npz, archives_that_are_refused)
{
    struct files f;
    struct dt_buffer b = {0};
    struct dt_buffer packed = {0};
    struct archive a = {0};

    files_make(&f);
    archive_add(&a, "x_train.npy", &f.x);
    archive_add(&a, "x_train.npy", &f.y);
    archive_end(&a, &b);
    expect_refused(&f, load_npz(&f, &b), "data.npz", "the name of another");

    make_npz(&f, 0, false, false, &b); /* both entries tell of the first member */
    memcpy(b.data + b.len - 22 - 57 + 42, "\0\0\0\0", 4);
    expect_refused(&f, load_npz(&f, &b), "data.npz", "another name than the directory says");

    for (unsigned i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a%u", i);
        archive_add(&a, name, &f.y);
    }
    archive_end(&a, &b);
    expect_refused(&f, load_npz(&f, &b), "data.npz", "holds 300 members");

    make_npz(&f, 0, false, false, &b);
    pack(&packed, b.data, b.len);
    expect_refused(&f, load_npz(&f, &packed), "data.npz", "unpack it (gunzip) first");
    memset(b.data, ' ', 2);
    expect_refused(&f, load_npz(&f, &b), "data.npz", "not the member");
    a.method = 8;
    a.claimed = (unsigned)f.x.len - 1;
    archive_add(&a, "x_train.npy", &f.x);
    a.claimed = 0;
    archive_add(&a, "y_train.npy", &f.y);
    archive_end(&a, &b);
    expect_refused(&f, load_npz(&f, &b), "x_train.npy", "has 175 bytes, its header claims 176");
    dt_buffer_deinit(&packed);
    dt_buffer_deinit(&b);
    files_remove(&f);
}

/* Deflate data and check sum are right, but longer than header and directory say. */
Test(npz, more_data_than_the_directory_says)
{
    struct files f;
    struct dt_buffer b = {0};
    struct dt_buffer longer = {0};
    struct archive a = {.method = 8};

    files_make(&f);
    dt_buffer_append(&longer, f.x.data, f.x.len);
    dt_buffer_append(&longer, "more", 4);
    a.claimed = (unsigned)f.x.len;
    archive_add(&a, "x_train.npy", &longer);
    a.claimed = 0;
    archive_add(&a, "y_train.npy", &f.y);
    archive_end(&a, &b);
    expect_refused(&f, load_npz(&f, &b), "x_train.npy", "more than the directory says follows");
    dt_buffer_deinit(&longer);
    dt_buffer_deinit(&b);
    files_remove(&f);
}
