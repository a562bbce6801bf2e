/*
 * csv.c - CSV files: right values, and every bad input told in one line with file, line and column.
 */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/train/scratch.h"
#include "worker/train/dataset.h"

TestSuite(csv, .timeout = 240);

struct file {
    struct scratch dir;
    char path[128];
    struct dataset train;
    struct dataset test;
    struct dt_error err;
};

static void
file_make(struct file *f)
{
    memset(f, 0, sizeof(*f));
    scratch_open(&f->dir);
    strcpy(f->path, scratch_path(&f->dir, "data.csv"));
}

static void
file_remove(struct file *f)
{
    dataset_deinit(&f->train);
    dataset_deinit(&f->test);
    scratch_close(&f->dir);
}

static void
load(struct file *f, const char *content, const struct dataset_options *o)
{
    dataset_deinit(&f->train);
    dataset_deinit(&f->test);
    write_file(f->path, content, strlen(content));
    cr_assert_eq(dataset_load_with(o, f->path, &f->train, &f->test, &f->err), DT_OK, "%s",
                 f->err.text);
}

/* Fails with DT_E_DATA and a line with the file's name, `place` (":LINE: ") and `word`. */
static void
expect_refused(struct file *f, const char *content, size_t len, const struct dataset_options *o,
               const char *place, const char *word)
{
    char wanted[256];

    dataset_deinit(&f->train);
    write_file(f->path, content, len);
    cr_assert_eq(dataset_load_with(o, f->path, &f->train, &f->test, &f->err), DT_E_DATA, "%s",
                 content);
    snprintf(wanted, sizeof(wanted), "%s%s", f->path, place);
    cr_expect_not_null(strstr(f->err.text, wanted), "'%s' is not in: %s", wanted, f->err.text);
    cr_expect_not_null(strstr(f->err.text, word), "'%s' is not in: %s", word, f->err.text);
    cr_expect_null(strchr(f->err.text, '\n'));
    cr_assert_null(f->train.x);
}

static void
expect_rows(const struct file *f, const float *x, const unsigned *y, unsigned rows,
            unsigned features)
{
    cr_assert_eq(f->train.n_rows, rows);
    cr_assert_eq(f->train.n_features, features);
    cr_expect(f->train.n_dims == 1 && f->train.dims[0] == features);
    cr_expect_eq(f->train.scale, 1.0f);
    cr_assert_not_null(f->train.y);
    cr_expect_null(f->train.t);
    for (unsigned i = 0; i < rows * features; i++)
        cr_expect_eq(f->train.x[i], x[i], "value %u", i);
    for (unsigned i = 0; i < rows; i++)
        cr_expect_eq(f->train.y[i], y[i], "label %u", i);
}

Test(csv, rows_without_a_header)
{
    static const float x[] = {1.5f, -2, .25f, 3e2f};
    static const unsigned y[] = {0, 2};
    struct file f;

    file_make(&f);
    load(&f, "1.5,-2,0\n.25,3e2,2\n", NULL);
    expect_rows(&f, x, y, 2, 2);
    cr_expect_eq(f.train.n_classes, 3);
    cr_expect_eq(f.test.n_rows, 0);
    load(&f, "1.5,-2,0\n.25,3e2,2", NULL); /* no end of the last line */
    expect_rows(&f, x, y, 2, 2);
    load(&f, "1.5,-2,0\r\n.25,3e2,2.0\r\n\r\n \n", NULL); /* CRLF, empty lines at the end */
    expect_rows(&f, x, y, 2, 2);
    load(&f, "\xef\xbb\xbf 1.5 ,\t-2,0\n\".25\" , \"3e2\",\"2\"\n",
         NULL); /* mark, blanks, quotes */
    expect_rows(&f, x, y, 2, 2);
    file_remove(&f);
}

Test(csv, the_label_is_a_column_of_that_name_or_the_last)
{
    static const float x[] = {1, 2, 3, 4};
    static const unsigned y[] = {1, 0};
    struct file f;

    file_make(&f);
    load(&f, "label,a,b\n1,1,2\n0,3,4\n", NULL);
    expect_rows(&f, x, y, 2, 2);
    load(&f, "a,b,kind\n1,2,1\n3,4,0\n", NULL);
    expect_rows(&f, x, y, 2, 2);
    load(&f, "a,kind,b\n1,1,2\n3,0,4\n", &(struct dataset_options){.label = "kind"});
    expect_rows(&f, x, y, 2, 2);
    load(&f, "a,kind,label\n1,1,2\n3,0,4\n", &(struct dataset_options){.label = "2"});
    expect_rows(&f, x, y, 2, 2);
    load(&f, "1,1,2\n3,0,4\n", &(struct dataset_options){.label = "-2"});
    expect_rows(&f, x, y, 2, 2);
    load(&f, "1,1,2\n0,3,4\n", &(struct dataset_options){.label = "1"});
    expect_rows(&f, x, y, 2, 2);
    file_remove(&f);
}

Test(csv, a_name_may_hold_commas_quotes_and_look_like_a_number)
{
    static const float x[] = {1, 2, 3, 4};
    static const unsigned y[] = {1, 0};
    struct file f;

    file_make(&f);
    load(&f, "a,\"the \"\"kind\"\", so\",b\n1,1,2\n3,0,4\n",
         &(struct dataset_options){.label = "the \"kind\", so"});
    expect_rows(&f, x, y, 2, 2);
    load(&f, "2,3,1\n1,2,1\n3,4,0\n", /* column 3 is called 1 */
         &(struct dataset_options){.label = "1", .header = DATASET_HEADER_YES});
    expect_rows(&f, x, y, 2, 2);
    file_remove(&f);
}

Test(csv, gzip_under_either_name)
{
    static const float x[] = {1, 2};
    static const unsigned y[] = {0, 1};
    struct dt_buffer packed = {0};
    struct file f;

    file_make(&f);
    pack(&packed, "1,0\n2,1\n", 8);
    write_file(f.path, packed.data, packed.len);
    cr_assert_eq(dataset_load(f.path, &f.train, &f.test, &f.err), DT_OK, "%s", f.err.text);
    expect_rows(&f, x, y, 2, 1);
    for (size_t n = 0; n < packed.len; n++) {
        dataset_deinit(&f.train);
        write_file(f.path, packed.data, n);
        cr_assert_eq(dataset_load(f.path, &f.train, &f.test, &f.err), DT_E_DATA, "%zu", n);
        cr_assert_not_null(strstr(f.err.text, f.path), "%s", f.err.text);
    }
    dt_buffer_deinit(&packed);
    file_remove(&f);
}

Test(csv, numbers_to_predict)
{
    static const char content[] = "x,y\n1,-2.5\n2,1e3\n";
    struct file f;

    file_make(&f);
    load(&f, content, &(struct dataset_options){.target = DATASET_NUMBERS});
    cr_expect_null(f.train.y);
    cr_assert_not_null(f.train.t);
    cr_expect(f.train.t[0] == -2.5f && f.train.t[1] == 1000.0f);
    cr_expect_eq(f.train.n_classes, 1);
    load(&f, content, &(struct dataset_options){.target = DATASET_EITHER});
    cr_expect(f.train.t && f.train.t[1] == 1000.0f);
    load(&f, "x,y\n1,2\n2,0\n", &(struct dataset_options){.target = DATASET_EITHER});
    cr_expect(f.train.y && f.train.y[0] == 2 && f.train.n_classes == 3);
    load(&f, "x,y\n1,2\n2,0\n", &(struct dataset_options){.target = DATASET_NUMBERS});
    cr_expect(f.train.t && f.train.t[0] == 2 && !f.train.y);
    expect_refused(&f, content, strlen(content), NULL,
                   ":2: ", "column 2 'y' holds the label '-2.5'");
    file_remove(&f);
}

Test(csv, scale_is_an_option)
{
    struct file f;

    file_make(&f);
    load(&f, "255,0\n51,1\n", &(struct dataset_options){.scale = 1.0f / 255});
    cr_expect_float_eq(f.train.x[0], 1.0f, 1e-6f);
    cr_expect_float_eq(f.train.x[1], .2f, 1e-6f);
    cr_expect_eq(f.train.scale, 1.0f / 255);
    file_remove(&f);
}

/* Runs `format` with `folder`. */
static bool
run(const char *format, const char *folder)
{
    char command[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command, sizeof(command), format, folder);
#pragma GCC diagnostic pop
    return system(command) == 0;
}

/* A locale whose decimal point is a comma: the system's, else made in `folder`. */
static bool
become_german(char *folder)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") &&
        run("localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder)) {
        setenv("LOCPATH", folder, 1);
        setlocale(LC_ALL, "de_DE.UTF-8");
    }
    return strcmp(localeconv()->decimal_point, ",") == 0;
}

Test(csv, the_locale_changes_nothing)
{
    static const float x[] = {1.5f, 2.25f};
    static const unsigned y[] = {0, 1};
    char folder[] = "/tmp/unit_train_locale.XXXXXX";
    struct file f;

    file_make(&f);
    cr_assert_not_null(mkdtemp(folder));
    bool german = become_german(folder);
    if (german) {
        load(&f, "1.5,0\n2.25,1\n", NULL);
        expect_rows(&f, x, y, 2, 1);
        expect_refused(&f, "\"1,5\",0\n1,1\n", 12, NULL, ":1: ", "column 1 holds '1,5'");
    }
    setlocale(LC_ALL, "C");
    run("rm -rf %s", folder);
    file_remove(&f);
    if (!german)
        cr_skip_test("no German locale, and localedef makes none");
}

struct bad {
    const char *content;
    const char *place;
    const char *word;
};

Test(csv, bad_input_is_told_in_one_line)
{
    static const struct bad bad[] = {
        {"", "", "is empty"},
        {"\n\n", "", "is empty"},
        {"a,b\n", "", "has a header, but no rows"},
        {"1,0\n2,x\n", ":2: ", "column 2 holds 'x', which is no number"},
        {"a,b,c\n1,2,0\n1,two,1\n", ":3: ", "column 2 'b' holds 'two', which is no number"},
        {"a,b\n1,0\n0x10,1\n", ":3: ", "column 1 'a' holds '0x10', which is no number"},
        {"a,b\n1.2.3,0\n", ":2: ", "which is no number"},
        {"1,2,0\n1,0\n", ":2: ", "has 2 columns, line 1 has 3"},
        {"1,2,0\n1,2,3,0\n", ":2: ", "has 4 columns, line 1 has 3"},
        {"1,2,0\n1,,0\n", ":2: ", "column 2 is empty"},
        {"1,2,0\n1,2,\n", ":2: ", "column 3 is empty"},
        {"a,b\n1,0\n\"2\n3\",1\n", ":3: ", "the quoted cell in column 1 does not end on its line"},
        {"\"a\r\nb\",c\n1,0\n", ":1: ", "line breaks inside quotes are not read"},
        {"1,0\n\"2", ":2: ", "the quoted cell in column 1"},
        {"1,0\n\"2\"5,1\n", ":2: ", "text follows the closing quote in column 1"},
        {"1,0\nnan,1\n", ":2: ", "column 1 holds 'nan', which is not finite"},
        {"1,0\n-Inf,1\n", ":2: ", "column 1 holds '-Inf', which is not finite"},
        {"1,0\n1,NaN\n", ":2: ", "column 2 holds 'NaN', which is not finite"},
        {"1,0\n1e39,1\n", ":2: ", "column 1 holds '1e39', which float32 cannot hold"},
        {"1,0\n-1.5E+999,1\n", ":2: ", "which float32 cannot hold"},
        {"1,0\n1,1.5\n", ":2: ", "column 2 holds the label '1.5', which is not a whole number"},
        {"1,0\n1,-1\n", ":2: ", "column 2 holds the label '-1', which is negative"},
        {"1,0\n1,65536\n", ":2: ", "column 2 holds the label '65536', which is above 65535"},
        {"1,0\n\n1,1\n", ":2: ", "the line is empty"},
        {"\n1,0\n", ":1: ", "the line is empty"},
        {"1;2;0\n1;2;0\n", ":1: ", "part columns by commas"},
        {"a,b,3\n1,2,0\n", ":1: ", "column 2 holds 'b': correct it, or say whether"},
        {"label,label\n1,0\n", ":1: ", "2 columns are called 'label'"},
        {"1,0\n1,\x01\x7f\xff\n", ":2: ", "column 2 holds '?\?\?', which is no number"},
    };
    struct file f;

    file_make(&f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_refused(&f, bad[i].content, strlen(bad[i].content), NULL, bad[i].place, bad[i].word);
    expect_refused(&f, "1,0\n1\0,0\n", 9, NULL, ":2: ", "holds a zero byte");
    file_remove(&f);
}

Test(csv, options_that_do_not_fit)
{
    static const char rows[] = "1,2,0\n1,2,1\n";
    static const char named[] = "a,b,c\n1,2,0\n";
    struct file f;

    file_make(&f);
    expect_refused(&f, rows, strlen(rows), &(struct dataset_options){.label = "kind"},
                   ":1: ", "the columns have no names, so none is called 'kind'");
    expect_refused(&f, named, strlen(named), &(struct dataset_options){.label = "kind"},
                   ":1: ", "the header has other columns, so none is called 'kind'");
    for (int i = 0; i < 3; i++) {
        static const char *const labels[] = {"4", "0", "-4"};
        expect_refused(&f, rows, strlen(rows), &(struct dataset_options){.label = labels[i]},
                       ":1: ", "there is no column");
    }
    expect_refused(&f, named, strlen(named), &(struct dataset_options){.header = DATASET_HEADER_NO},
                   ":1: ", "column 1 holds 'a', which is no number");
    load(&f, rows, &(struct dataset_options){.header = DATASET_HEADER_YES});
    cr_expect_eq(f.train.n_rows, 1);
    file_remove(&f);
}

/* A CSV file cut anywhere is a shorter one, or is told of in one line. */
Test(csv, every_cut)
{
    static const char content[] = "a,\"b\"\"\",label\r\n1.5,\"2\",0\r\n-3e1,4,1\r\n5,6.25,2\r\n";
    struct file f;
    unsigned good = 0;

    file_make(&f);
    for (size_t n = 0; n < strlen(content); n++) {
        write_file(f.path, content, n);
        enum dt_status s = dataset_load(f.path, &f.train, &f.test, &f.err);
        cr_assert(s == DT_OK || s == DT_E_DATA, "%zu: %s", n, f.err.text);
        if (s == DT_OK) {
            cr_expect_leq(f.train.n_rows, 3);
            good++;
        } else {
            cr_expect_not_null(strstr(f.err.text, f.path), "%s", f.err.text);
            cr_expect_null(strchr(f.err.text, '\n'));
            cr_expect_null(f.train.x);
        }
        dataset_deinit(&f.train);
    }
    cr_expect_eq(good, 8); /* behind each label, its CR and its LF, but for the last LF */
    file_remove(&f);
}

Test(csv, more_than_fits_the_buffer)
{
    enum { ROWS = 700, COLUMNS = 301 };
    struct dt_buffer b = {0};
    struct file f;

    file_make(&f);
    for (unsigned r = 0; r < ROWS; r++) {
        for (unsigned c = 0; c + 1 < COLUMNS; c++)
            dt_buffer_printf(&b, "%u,", r * 1000 + c);
        dt_buffer_printf(&b, "%u\n", r % 7);
    }
    load(&f, dt_buffer_str(&b), NULL);
    cr_assert_eq(f.train.n_rows, ROWS);
    for (unsigned r = 0; r < ROWS; r++) {
        cr_assert_eq(f.train.y[r], r % 7);
        for (unsigned c = 0; c + 1 < COLUMNS; c++)
            cr_assert_eq(f.train.x[r * (COLUMNS - 1) + c], (float)(r * 1000 + c));
    }
    dt_buffer_deinit(&b);
    file_remove(&f);
}

Test(csv, a_line_without_an_end)
{
    struct dt_buffer b = {0};
    struct dt_buffer packed = {0};
    struct file f;

    file_make(&f);
    dt_buffer_append(&b, "1,0\n", 4);
    for (int i = 0; i < (17 << 20) / 16; i++)
        dt_buffer_append(&b, "1234567890123456", 16);
    pack(&packed, b.data, b.len);
    write_file(f.path, packed.data, packed.len);
    cr_expect_eq(dataset_load(f.path, &f.train, &f.test, &f.err), DT_E_DATA);
    cr_expect_not_null(strstr(f.err.text, ":2: the line is longer than"), "%s", f.err.text);
    dt_buffer_clear(&b);
    for (int i = 0; i < (1 << 20) + 1; i++)
        dt_buffer_append(&b, "1,", 2);
    expect_refused(&f, dt_buffer_str(&b), b.len, NULL, ":1: ", "more than 1048576 columns");
    dt_buffer_deinit(&b);
    dt_buffer_deinit(&packed);
    file_remove(&f);
}

static void
write_text(const struct file *f, const char *name, const char *content)
{
    write_file(scratch_path(&f->dir, name), content, strlen(content));
}

Test(csv, a_directory_with_training_and_test_rows)
{
    struct file f;

    file_make(&f);
    write_text(&f, "train.csv", "a,label\n1,0\n2,1\n");
    write_text(&f, "test.csv", "a,label\n3,4\n");
    cr_assert_eq(dataset_load(f.dir.dir, &f.train, &f.test, &f.err), DT_OK, "%s", f.err.text);
    cr_expect(f.train.n_rows == 2 && f.test.n_rows == 1);
    cr_expect(f.train.n_classes == 5 && f.test.n_classes == 5);
    cr_expect_eq(f.test.x[0], 3.0f);
    dataset_deinit(&f.train);
    dataset_deinit(&f.test);

    write_text(&f, "test.csv", "b,label\n3,4\n");
    cr_expect_eq(dataset_load(f.dir.dir, &f.train, &f.test, &f.err), DT_E_DATA);
    cr_expect_not_null(strstr(f.err.text, "has another header"), "%s", f.err.text);
    write_text(&f, "test.csv", "3,4,0\n");
    cr_expect_eq(dataset_load(f.dir.dir, &f.train, &f.test, &f.err), DT_E_DATA);
    cr_expect_not_null(strstr(f.err.text, "2 features and another shape"), "%s", f.err.text);

    write_text(&f, "more.csv", "5,1\n6,1\n7,1\n");
    struct dataset_options o = {.test = scratch_path(&f.dir, "more.csv")};
    cr_assert_eq(dataset_load_with(&o, f.dir.dir, &f.train, &f.test, &f.err), DT_OK, "%s",
                 f.err.text);
    cr_expect_eq(f.test.n_rows, 3);
    dataset_deinit(&f.train);
    dataset_deinit(&f.test);
    o.test = "/nonexistent/test.csv";
    cr_expect_eq(dataset_load_with(&o, f.dir.dir, &f.train, &f.test, &f.err), DT_E_NO_INPUT);
    cr_expect_null(f.train.x);
    file_remove(&f);
}

Test(csv, check_describes_the_columns)
{
    struct file f;
    char text[1024];

    file_make(&f);
    write_text(&f, "train.csv", "a,kind,b\n1,0,2\n2,1,2\n3,1,2\n");
    write_text(&f, "test.csv", "a,kind,b\n1,0.5,2\n");
    struct dataset_options o = {.label = "kind", .target = DATASET_EITHER};
    cr_assert_eq(dataset_check_with(&o, f.dir.dir, text, sizeof(text), &f.err), DT_OK, "%s",
                 f.err.text);
    cr_expect_not_null(strstr(text, "train.csv: plain CSV with header, 3 rows of 2 values (2 "
                                    "features); label column 2 'kind': 3 numbers from 0 to 1\n"),
                       "%s", text);
    cr_expect_not_null(strstr(text, "1 number from 0.5 to 0.5\n"), "%s", text);
    write_text(&f, "test.csv", "1,0,2\n");
    o.label = "2";
    cr_assert_eq(dataset_check_with(&o, f.dir.dir, text, sizeof(text), &f.err), DT_OK);
    cr_expect_not_null(strstr(text, "3 labels of 2 classes, 1 to 2 rows a class\n"), "%s", text);
    cr_expect_not_null(strstr(text, "test.csv: plain CSV without header, 1 row of 2 values"), "%s",
                       text);
    file_remove(&f);
}
