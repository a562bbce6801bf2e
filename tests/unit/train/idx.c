/*
 * idx.c - IDX files, plain and gzip: right values, every cut and every lie told in one line.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/train/scratch.h"
#include "worker/train/dataset.h"

TestSuite(idx, .timeout = 120);
TestSuite(dataset, .timeout = 240);

static const unsigned image_dims[] = {5, 2, 3};
static const unsigned label_dims[] = {5};

struct files {
    struct scratch dir;
    struct dt_buffer images;
    struct dt_buffer labels;
    char images_path[128];
    char labels_path[128];
};

static void
files_make(struct files *f)
{
    memset(f, 0, sizeof(*f));
    scratch_open(&f->dir);
    make_idx(&f->images, 3, image_dims, 256);
    make_idx(&f->labels, 1, label_dims, 3);
    strcpy(f->images_path, scratch_path(&f->dir, "train-images-idx3-ubyte"));
    strcpy(f->labels_path, scratch_path(&f->dir, "train-labels-idx1-ubyte"));
    write_file(f->images_path, f->images.data, f->images.len);
    write_file(f->labels_path, f->labels.data, f->labels.len);
}

static void
files_remove(struct files *f)
{
    dt_buffer_deinit(&f->images);
    dt_buffer_deinit(&f->labels);
    scratch_close(&f->dir);
}

/* Load fails with `code` and a line that names `path`; nothing is left in the data set. */
static void
expect_refused(struct files *f, enum dt_status code, const char *path, const char *word)
{
    struct dataset d;
    struct dt_error err = {0};

    cr_assert_eq(idx_load(f->images_path, f->labels_path, &d, &err), code, "%s", err.text);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    if (word)
        cr_assert_not_null(strstr(err.text, word), "'%s' is not in: %s", word, err.text);
    cr_assert_null(strchr(err.text, '\n'));
    cr_assert_null(d.x);
    cr_assert_null(d.y);
}

static void
expect_loads(struct files *f)
{
    struct dataset d;
    struct dt_error err = {0};

    cr_assert_eq(idx_load(f->images_path, f->labels_path, &d, &err), DT_OK, "%s", err.text);
    cr_expect_eq(d.n_rows, 5);
    cr_expect_eq(d.n_features, 6);
    cr_expect_eq(d.n_classes, 3);
    cr_expect_eq(d.n_dims, 2);
    cr_expect_eq(d.dims[0], 2);
    cr_expect_eq(d.dims[1], 3);
    for (unsigned k = 0; k < 30; k++)
        cr_expect_float_eq(d.x[k], (float)k / 255.0f, 1e-7f);
    for (unsigned k = 0; k < 5; k++)
        cr_expect_eq(d.y[k], k % 3);
    dataset_deinit(&d);
    cr_expect_null(d.x);
}

Test(idx, plain_and_gzip_under_either_name)
{
    struct files f;
    struct dt_buffer packed = {0};

    files_make(&f);
    expect_loads(&f);
    pack(&packed, f.images.data, f.images.len);
    write_file(f.images_path, packed.data, packed.len); /* gzip without a suffix */
    expect_loads(&f);
    strcpy(f.labels_path, scratch_path(&f.dir, "labels.gz"));
    write_file(f.labels_path, f.labels.data, f.labels.len); /* plain with one */
    expect_loads(&f);
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

Test(idx, members_may_follow_each_other_but_nothing_else)
{
    struct files f;
    struct dt_buffer packed = {0};

    files_make(&f);
    pack(&packed, f.images.data, 20);
    pack(&packed, f.images.data + 20, f.images.len - 20);
    write_file(f.images_path, packed.data, packed.len);
    expect_loads(&f);
    dt_buffer_append(&packed, "junk", 4);
    write_file(f.images_path, packed.data, packed.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "follow");
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

Test(idx, every_cut_of_a_plain_file)
{
    struct files f;

    files_make(&f);
    for (size_t n = 0; n < f.images.len; n++) {
        write_file(f.images_path, f.images.data, n);
        expect_refused(&f, DT_E_DATA, f.images_path, n < 16 ? "ends at offset" : "header claims");
    }
    write_file(f.images_path, f.images.data, f.images.len);
    for (size_t n = 0; n < f.labels.len; n++) {
        write_file(f.labels_path, f.labels.data, n);
        expect_refused(&f, DT_E_DATA, f.labels_path, NULL);
    }
    files_remove(&f);
}

Test(idx, every_cut_of_a_gzip_file)
{
    struct files f;
    struct dt_buffer packed = {0};

    files_make(&f);
    pack(&packed, f.images.data, f.images.len);
    for (size_t n = 0; n < packed.len; n++) {
        write_file(f.images_path, packed.data, n);
        expect_refused(&f, DT_E_DATA, f.images_path, n < 2 ? "ends at offset" : "file was cut");
    }
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

Test(idx, every_cut_before_packing)
{
    struct files f;

    files_make(&f);
    for (size_t n = 0; n < f.images.len; n++) {
        struct dt_buffer packed = {0};
        pack(&packed, f.images.data, n);
        write_file(f.images_path, packed.data, packed.len);
        expect_refused(&f, DT_E_DATA, f.images_path, "ends at offset");
        dt_buffer_deinit(&packed);
    }
    files_remove(&f);
}

Test(idx, every_flipped_byte_of_a_gzip_file_is_noticed_or_harmless)
{
    struct files f;
    struct dt_buffer packed = {0};
    struct dataset d;
    unsigned refused = 0;

    files_make(&f);
    pack(&packed, f.images.data, f.images.len);
    for (size_t n = 10; n < packed.len; n++) { /* the first 10 are gzip's header */
        packed.data[n] ^= 0x41;
        write_file(f.images_path, packed.data, packed.len);
        enum dt_status s = idx_load(f.images_path, f.labels_path, &d, NULL);
        cr_assert(s == DT_OK || s == DT_E_DATA);
        refused += s == DT_E_DATA;
        dataset_deinit(&d);
        packed.data[n] ^= 0x41;
    }
    cr_expect_eq(refused, packed.len - 10);
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

Test(idx, bytes_behind_the_end)
{
    struct files f;
    struct dt_buffer packed = {0};

    files_make(&f);
    dt_buffer_append(&f.images, "x", 1);
    write_file(f.images_path, f.images.data, f.images.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "header claims 46");
    pack(&packed, f.images.data, f.images.len);
    write_file(f.images_path, packed.data, packed.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "goes on after offset 46");
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

static void
expect_header_refused(struct files *f, unsigned at, unsigned char value, const char *word)
{
    unsigned char old = f->images.data[at];

    f->images.data[at] = value;
    write_file(f->images_path, f->images.data, f->images.len);
    expect_refused(f, DT_E_DATA, f->images_path, word);
    f->images.data[at] = old;
}

Test(idx, bad_magic)
{
    struct files f;

    files_make(&f);
    expect_header_refused(&f, 0, 'P', "starts with 50");
    expect_header_refused(&f, 2, 0x0d, "type 0d");
    expect_header_refused(&f, 3, 1, "swapped");
    expect_header_refused(&f, 3, 0, "00000803");
    expect_header_refused(&f, 3, 6, "00000803");
    expect_header_refused(&f, 7, 0, "no rows");
    files_remove(&f);
}

Test(idx, swapped_and_missing_files)
{
    struct files f;
    struct dataset d;
    struct dt_error err;

    files_make(&f);
    cr_expect_eq(idx_load(f.labels_path, f.images_path, &d, &err), DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "swapped"), "%s", err.text);
    cr_expect_eq(idx_load(f.images_path, f.images_path, &d, &err), DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "swapped"), "%s", err.text);
    cr_expect_eq(idx_load("/nonexistent/x", f.labels_path, &d, &err), DT_E_NO_INPUT);
    cr_expect_eq(idx_load(f.dir.dir, f.labels_path, &d, &err), DT_E_NO_INPUT);
    files_remove(&f);
}

Test(idx, other_numbers_of_dimensions)
{
    static const unsigned dims2[] = {5, 6};
    static const unsigned dims5[] = {5, 1, 2, 3, 1};
    struct files f;
    struct dataset d;

    files_make(&f);
    dt_buffer_clear(&f.images);
    make_idx(&f.images, 2, dims2, 256);
    write_file(f.images_path, f.images.data, f.images.len);
    cr_assert_eq(idx_load(f.images_path, f.labels_path, &d, NULL), DT_OK);
    cr_expect(d.n_dims == 1 && d.dims[0] == 6 && d.n_features == 6);
    dataset_deinit(&d);
    dt_buffer_clear(&f.images);
    make_idx(&f.images, 5, dims5, 256);
    write_file(f.images_path, f.images.data, f.images.len);
    cr_assert_eq(idx_load(f.images_path, f.labels_path, &d, NULL), DT_OK);
    cr_expect(d.n_dims == 4 && d.dims[1] == 2 && d.dims[2] == 3 && d.n_features == 6);
    dataset_deinit(&d);
    files_remove(&f);
}

Test(idx, count_mismatch)
{
    static const unsigned four[] = {4};
    struct files f;

    files_make(&f);
    dt_buffer_clear(&f.labels);
    make_idx(&f.labels, 1, four, 3);
    write_file(f.labels_path, f.labels.data, f.labels.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "5 images");
    expect_refused(&f, DT_E_DATA, f.labels_path, "4 labels");
    files_remove(&f);
}

static long
peak_kib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

Test(idx, a_lying_header_costs_no_memory)
{
    static const unsigned one[] = {1000000, 700, 700};
    static const unsigned labels[] = {1000000};
    struct files f;
    struct dt_buffer packed = {0};

    files_make(&f);
    dt_buffer_clear(&f.labels);
    make_idx(&f.labels, 1, labels, 3);
    write_file(f.labels_path, f.labels.data, f.labels.len);
    for (int d = 0; d < 3; d++) { /* 490 GB claimed, 30 bytes there */
        f.images.data[4 + 4 * d + 1] = (unsigned char)(one[d] >> 16);
        f.images.data[4 + 4 * d + 2] = (unsigned char)(one[d] >> 8);
        f.images.data[4 + 4 * d + 3] = (unsigned char)one[d];
    }
    pack(&packed, f.images.data, f.images.len);
    long before = peak_kib();
    write_file(f.images_path, f.images.data, f.images.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "header claims 490000000016");
    write_file(f.images_path, packed.data, packed.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "ends at offset 46 (unpacked)");
    cr_expect_lt(peak_kib() - before, 64 * 1024);
    memset(f.images.data + 4, 0xff, 12);
    write_file(f.images_path, f.images.data, f.images.len);
    expect_refused(&f, DT_E_DATA, f.images_path, "more than 2^40");
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

/* 46 bytes are there; the products of the claims, by less bits, are small. */
Test(idx, shapes_whose_product_passes_2_to_the_31_32_and_63)
{
    static const struct {
        unsigned dims[3];
        const char *word;
    } claims[] = {
        {{5, 46341, 46341}, "header claims 10737441421"}, /* an image passes 2^31 */
        {{5, 65536, 65537}, "header claims 21475164176"}, /* and 2^32: 65536 in 32 bits */
        {{65536, 65536, 2}, "header claims 8589934608"},  /* 2^33: 0 in 32 bits */
        {{2097152, 2097152, 2097152}, "more than 2^40"},  /* 2^63: negative in 64 bits */
        {{4194304, 2097152, 2097152}, "more than 2^40"},  /* 2^64: 0 in 64 bits */
        {{0xffffffff, 0xffffffff, 3}, "more than 2^40"},
    };
    struct files f;

    files_make(&f);
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        for (int b = 0; b < 12; b++)
            f.images.data[4 + b] = (unsigned char)(claims[i].dims[b / 4] >> (24 - 8 * (b % 4)));
        write_file(f.images_path, f.images.data, f.images.len);
        expect_refused(&f, DT_E_DATA, f.images_path, claims[i].word);
    }
    files_remove(&f);
}

Test(idx, a_bomb_costs_what_its_header_claims)
{
    static const unsigned dims[] = {5, 2, 3};
    struct files f;
    struct dt_buffer big = {0};
    struct dt_buffer packed = {0};

    files_make(&f);
    make_idx(&big, 3, dims, 256);
    char *zeros = calloc(1, 1 << 20);
    for (int i = 0; i < 96; i++)
        dt_buffer_append(&big, zeros, 1 << 20);
    free(zeros);
    pack(&packed, big.data, big.len);
    dt_buffer_deinit(&big);
    cr_assert_lt(packed.len, 1000000);
    write_file(f.images_path, packed.data, packed.len);
    long before = peak_kib();
    expect_refused(&f, DT_E_DATA, f.images_path, "goes on after offset 46");
    cr_expect_lt(peak_kib() - before, 64 * 1024);
    dt_buffer_deinit(&packed);
    files_remove(&f);
}

Test(dataset, the_shipped_digits)
{
    struct dataset train;
    struct dataset test;
    struct dt_error err = {0};
    unsigned counts[10] = {0};

    cr_assert_eq(dataset_load(digits_path(), &train, &test, &err), DT_OK, "%s", err.text);
    cr_expect_eq(train.n_rows, 1500);
    cr_expect_eq(test.n_rows, 297);
    cr_expect(train.n_features == 64 && train.dims[0] == 8 && train.dims[1] == 8);
    cr_expect_eq(train.n_classes, 10);
    cr_expect_eq(test.n_classes, 10);
    for (uint64_t i = 0; i < 297; i++)
        counts[test.y[i]]++;
    for (int i = 0; i < 10; i++)
        cr_expect_gt(counts[i], 20);
    cr_expect_eq(train.y[0], 0); /* first row of the csv: 0,0,5,13,... label 0 */
    cr_expect_float_eq(train.x[2], 80.0f / 255.0f, 1e-6f);
    dataset_deinit(&train);
    dataset_deinit(&test);
}

Test(dataset, check_tells_a_line_a_file)
{
    char text[2048];
    unsigned lines = 0;
    struct dt_error err = {0};

    cr_assert_eq(dataset_check(digits_path(), text, sizeof(text), &err), DT_OK, "%s", err.text);
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    cr_expect_eq(lines, 4, "%s", text);
    cr_expect_not_null(strstr(text, "gzip IDX, 1500 rows of 8x8 pixels (64 features)"), "%s", text);
    cr_expect_not_null(strstr(text, "297 labels of 10 classes"), "%s", text);
    cr_expect_eq(dataset_check(digits_path(), text, 40, &err), DT_OK); /* cut, not overrun */
    cr_expect_lt(strlen(text), 40);
}

Test(dataset, a_training_set_alone)
{
    struct files f;
    struct dataset train;
    struct dataset test;
    struct dt_error err = {0};

    files_make(&f);
    cr_assert_eq(dataset_load(f.dir.dir, &train, &test, &err), DT_OK, "%s", err.text);
    cr_expect_eq(train.n_rows, 5);
    cr_expect_eq(test.n_rows, 0);
    cr_expect_null(test.x);
    dataset_deinit(&train);
    dataset_deinit(&test);
    files_remove(&f);
}

Test(dataset, test_set_of_another_shape_or_with_more_classes)
{
    static const unsigned other[] = {5, 3, 2};
    struct files f;
    struct dataset train;
    struct dataset test;
    struct dt_error err = {0};
    struct dt_buffer b = {0};

    files_make(&f);
    make_idx(&b, 3, other, 256);
    write_file(scratch_path(&f.dir, "t10k-images-idx3-ubyte"), b.data, b.len);
    write_file(scratch_path(&f.dir, "t10k-labels-idx1-ubyte"), f.labels.data, f.labels.len);
    cr_expect_eq(dataset_load(f.dir.dir, &train, &test, &err), DT_E_DATA);
    cr_expect_null(train.x);
    write_file(scratch_path(&f.dir, "t10k-images-idx3-ubyte"), f.images.data, f.images.len);
    f.labels.data[f.labels.len - 1] = 8;
    write_file(scratch_path(&f.dir, "t10k-labels-idx1-ubyte"), f.labels.data, f.labels.len);
    cr_assert_eq(dataset_load(f.dir.dir, &train, &test, &err), DT_OK, "%s", err.text);
    cr_expect_eq(train.n_classes, 9); /* both have those of both */
    cr_expect_eq(test.n_classes, 9);
    dataset_deinit(&train);
    dataset_deinit(&test);
    dt_buffer_deinit(&b);
    files_remove(&f);
}

Test(dataset, missing_files_are_named)
{
    struct scratch dir;
    struct dataset train;
    struct dataset test;
    struct dt_error err = {0};

    scratch_open(&dir);
    cr_expect_eq(dataset_load(dir.dir, &train, &test, &err), DT_E_NO_INPUT);
    cr_expect_not_null(strstr(err.text, "train-images-idx3-ubyte"), "%s", err.text);
    write_file(scratch_path(&dir, "train-images-idx3-ubyte"), "", 0);
    cr_expect_eq(dataset_load(dir.dir, &train, &test, &err), DT_E_NO_INPUT);
    cr_expect_not_null(strstr(err.text, "train-labels-idx1-ubyte"), "%s", err.text);
    cr_expect_eq(dataset_load(scratch_path(&dir, "train-images-idx3-ubyte"), &train, &test, &err),
                 DT_E_DATA);
    cr_expect_not_null(strstr(err.text, "is empty"), "%s", err.text);
    write_file(scratch_path(&dir, "train-images-idx3-ubyte"), "\0\0\x08\3", 4);
    cr_expect_eq(dataset_load(scratch_path(&dir, "train-images-idx3-ubyte"), &train, &test, &err),
                 DT_E_NO_INPUT);
    cr_expect_not_null(strstr(err.text, "name the directory"), "%s", err.text);
    cr_expect_eq(dataset_load("/nonexistent/data", &train, &test, &err), DT_E_NO_INPUT);
    scratch_close(&dir);
}
