/*
 * safetensors.c - model files: what was saved comes back; every corruption is refused; failures of
 * writing leave nothing.
 */
#include "worker/train/safetensors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>

#include "tests/unit/train/scratch.h"

TestSuite(model_file, .timeout = 120);

static const float kernel[6] = {1.5f, -2, 3e-39f, 4, 5, 6};
static const float bias[2] = {.25f, -.75f};

static void
sample_make(struct model_file *mf)
{
    memset(mf, 0, sizeof(*mf));
    cr_assert_eq(model_file_add_meta(mf, NULL, "model", "%s", "softmax"), DT_OK);
    cr_assert_eq(model_file_add_meta(mf, NULL, "classes", "%d", 2), DT_OK);
    cr_assert_eq(model_file_add_tensor(mf, "dense/kernel", 2, (uint64_t[]){3, 2}, kernel, NULL),
                 DT_OK);
    cr_assert_eq(model_file_add_tensor(mf, "dense/bias", 1, (uint64_t[]){2}, bias, NULL), DT_OK);
}

static void
expect_sample(const char *path)
{
    struct model_file mf;
    struct dt_error err = {0};

    cr_assert_eq(model_file_load(path, &mf, &err), DT_OK, "%s", err.text);
    cr_expect_eq(mf.n_meta, 2);
    cr_expect_str_eq(model_file_meta(&mf, "model"), "softmax");
    cr_expect_str_eq(model_file_meta(&mf, "classes"), "2");
    cr_expect_null(model_file_meta(&mf, "job"));
    cr_expect_eq(mf.n_tensors, 2);
    const struct model_file_tensor *t = model_file_find(&mf, "dense/kernel");
    cr_assert_not_null(t);
    cr_expect(t->n_dims == 2 && t->shape[0] == 3 && t->shape[1] == 2 && t->elements == 6);
    cr_expect_eq(memcmp(t->data, kernel, sizeof(kernel)), 0);
    t = model_file_find(&mf, "dense/bias");
    cr_assert_not_null(t);
    cr_expect_eq(memcmp(t->data, bias, sizeof(bias)), 0);
    cr_expect_null(model_file_find(&mf, "dense"));
    model_file_deinit(&mf);
    cr_expect_null(mf.storage);
}

Test(model_file, comes_back_as_it_was)
{
    struct scratch dir;
    struct model_file mf;
    struct dt_error err = {0};

    scratch_open(&dir);
    sample_make(&mf);
    const char *path = scratch_path(&dir, "w.safetensors");
    cr_assert_eq(model_file_save(path, &mf, &err), DT_OK, "%s", err.text);
    expect_sample(path);
    cr_assert_eq(model_file_save(path, &mf, &err), DT_OK, "%s", err.text); /* over the old one */
    expect_sample(path);
    cr_expect_eq(scratch_count(&dir), 1);
    scratch_close(&dir);
}

Test(model_file, describes_a_model)
{
    struct scratch dir;
    struct model *m;
    struct model_file mf = {0};
    struct model_file back;
    struct dataset d = {.n_classes = 2, .n_dims = 2, .dims = {3, 1}, .scale = 1.0f / 255.0f};

    scratch_open(&dir);
    cr_assert_eq(model_create("softmax", 3, 2, 1, 0, &m, NULL), DT_OK);
    cr_assert_eq(model_file_describe(&mf, m, &d, (const float *[]){kernel, bias}, "j", 77, NULL),
                 DT_OK);
    const char *path = scratch_path(&dir, "w");
    cr_assert_eq(model_file_save(path, &mf, NULL), DT_OK);
    cr_assert_eq(model_file_load(path, &back, NULL), DT_OK);
    cr_expect_str_eq(model_file_meta(&back, "format"), MODEL_FILE_FORMAT);
    cr_expect_str_eq(model_file_meta(&back, "model"), "softmax");
    cr_expect_str_eq(model_file_meta(&back, "input"), "3,1");
    cr_expect_str_eq(model_file_meta(&back, "classes"), "2");
    cr_expect_str_eq(model_file_meta(&back, "job"), "j");
    cr_expect_str_eq(model_file_meta(&back, "step"), "77");
    cr_expect_eq(strtof(model_file_meta(&back, "scale"), NULL), 1.0f / 255.0f);
    cr_expect_eq(back.n_tensors, 2);
    model_file_deinit(&back);
    model_destroy(m);
    scratch_close(&dir);
}

/* A file of `header` and `data_bytes` zeros. */
static void
write_model(const char *path, const char *header, size_t data_bytes)
{
    struct dt_buffer b = {0};
    uint64_t len = strlen(header);
    char zero = 0;

    dt_buffer_append(&b, &len, 8);
    dt_buffer_append(&b, header, len);
    for (size_t i = 0; i < data_bytes; i++)
        dt_buffer_append(&b, &zero, 1);
    cr_assert(!b.failed);
    write_file(path, b.data, b.len);
    dt_buffer_deinit(&b);
}

static void
expect_refused(const char *path, const char *what)
{
    struct model_file mf;
    struct dt_error err = {0};

    cr_assert_eq(model_file_load(path, &mf, &err), DT_E_DATA, "%s: %s", what, err.text);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'));
    cr_assert_eq(mf.n_tensors, 0);
    cr_assert_null(mf.storage);
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

Test(model_file, every_lie_of_a_header_is_refused)
{
    static const char *const headers[] = {
        "",
        "[]",
        "{",
        "{" A "} x",
        "{" A "," A "}", /* duplicate key */
        "{\"a\":1}",
        "{\"a\":{}}",
        "{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1}}",
        "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":\"2\",\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", /* does not cover */
        /* a product that wraps to 2 in 64 bit, and ones past any file */
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[3,6148914691236517206],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,2,2,2],"
        "\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}",
        /* 2^31 + 2 and 2^32 + 2: both 2 in fewer bits; 2^63 + 2 */
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1073741825],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2147483649],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,4611686018427387905],\"data_offsets\":[0,8]}}",
        /* overlap, and a hole */
        "{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}",
        "{\"__metadata__\":[]," A "}",
        "{\"__metadata__\":{\"k\":1}," A "}",
        "{\"__metadata__\":{\"k\":\"1\",\"k\":\"1\"}," A "}",
        "{\"__metadata__\":{\"k23456789012345678901234567890123\":\"1\"}," A "}",
    };
    struct scratch dir;
    struct model_file mf;

    scratch_open(&dir);
    const char *path = scratch_path(&dir, "w");
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        write_model(path, headers[i], 8);
        expect_refused(path, headers[i]);
    }
    write_model(path, "{" A "}  ", 8); /* the frame of all of these is good */
    cr_expect_eq(model_file_load(path, &mf, NULL), DT_OK);
    model_file_deinit(&mf);
    write_model(path, "{}", 0);
    cr_expect_eq(model_file_load(path, &mf, NULL), DT_OK);
    cr_expect_eq(mf.n_tensors, 0);
    model_file_deinit(&mf);
    scratch_close(&dir);
}

Test(model_file, every_cut_and_longer_files_are_refused)
{
    struct scratch dir;
    struct model_file mf;
    struct dt_buffer b = {0};

    scratch_open(&dir);
    sample_make(&mf);
    const char *path = scratch_path(&dir, "w");
    cr_assert_eq(model_file_save(path, &mf, NULL), DT_OK);
    read_file(path, &b);
    for (size_t n = 0; n < b.len; n++) {
        write_file(path, b.data, n);
        expect_refused(path, "cut");
    }
    dt_buffer_append(&b, "12345678", 8);
    write_file(path, b.data, b.len);
    expect_refused(path, "longer");
    memset(b.data, 0xff, 8);
    write_file(path, b.data, b.len);
    expect_refused(path, "header length 2^64-1");
    dt_buffer_deinit(&b);
    scratch_close(&dir);
}

Test(model_file, too_many_tensors_and_deep_nesting)
{
    struct scratch dir;
    struct dt_buffer b = {0};

    scratch_open(&dir);
    const char *path = scratch_path(&dir, "w");
    dt_buffer_printf(&b, "{");
    for (int i = 0; i <= MODEL_MAX_VARIABLES; i++)
        dt_buffer_printf(&b, "%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                         i ? "," : "", i, 4 * i, 4 * i + 4);
    dt_buffer_printf(&b, "}");
    write_model(path, dt_buffer_str(&b), 4 * (MODEL_MAX_VARIABLES + 1));
    expect_refused(path, "33 tensors");
    dt_buffer_clear(&b);
    for (int i = 0; i < 100000; i++)
        dt_buffer_append(&b, "[", 1);
    write_model(path, dt_buffer_str(&b), 0);
    expect_refused(path, "nesting");
    dt_buffer_deinit(&b);
    scratch_close(&dir);
}

Test(model_file, places_that_cannot_be_written)
{
    struct scratch dir;
    struct model_file mf;
    struct dt_error err = {0};

    scratch_open(&dir);
    sample_make(&mf);
    cr_expect_eq(model_file_save("/nonexistent/w", &mf, &err), DT_E_CANT_CREATE);
    cr_expect_not_null(strstr(err.text, "/nonexistent/w"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "No such file"), "%s", err.text);
    cr_expect_eq(model_file_probe("/nonexistent/w", &err), DT_E_CANT_CREATE);
    const char *sub = scratch_path(&dir, "sub");
    cr_assert_eq(mkdir(sub, 0700), 0);
    cr_expect_eq(model_file_save(sub, &mf, &err), DT_E_CANT_CREATE); /* a directory is in the way */
    cr_expect_eq(model_file_probe(sub, &err), DT_E_CANT_CREATE);
    const char *fifo = scratch_path(&dir, "fifo");
    struct stat st;
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    cr_expect_eq(model_file_probe(fifo, &err), DT_E_CANT_CREATE);
    cr_expect_eq(model_file_save(fifo, &mf, &err), DT_E_CANT_CREATE);
    cr_expect_eq(model_file_probe("/dev/null", &err), DT_E_CANT_CREATE);
    cr_expect(stat(fifo, &st) == 0 && S_ISFIFO(st.st_mode), "the FIFO was replaced");
    cr_expect_eq(model_file_probe(scratch_path(&dir, "w"), &err), DT_OK);
    cr_expect_eq(scratch_count(&dir), 2, "something was left");
    cr_expect_eq(model_file_load("/nonexistent/w", &mf, &err), DT_E_NO_INPUT);
    cr_expect_eq(model_file_load(dir.dir, &mf, &err), DT_E_NO_INPUT);
    scratch_close(&dir);
}

Test(model_file, a_failed_write_keeps_the_old_file)
{
    struct scratch dir;
    struct model_file mf;
    struct dt_error err = {0};
    struct rlimit limit = {100, 100};

    scratch_open(&dir);
    sample_make(&mf);
    const char *path = scratch_path(&dir, "w");
    cr_assert_eq(model_file_save(path, &mf, &err), DT_OK);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    struct rlimit small = {100, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum dt_status s = model_file_save(path, &mf, &err);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_expect_eq(s, DT_E_IO, "%s", err.text);
    cr_expect_not_null(strstr(err.text, "File too large"), "%s", err.text);
    cr_expect_eq(scratch_count(&dir), 1);
    expect_sample(path);
    scratch_close(&dir);
}

Test(model_file, limits_are_told)
{
    struct model_file mf = {0};
    char longer[300];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    cr_expect_eq(model_file_add_meta(&mf, NULL, "k", "%s", longer), DT_E_INTERNAL);
    cr_expect_eq(model_file_add_tensor(&mf, longer, 0, NULL, kernel, NULL), DT_E_INTERNAL);
    for (int i = 0; i < MODEL_FILE_MAX_META; i++)
        cr_expect_eq(model_file_add_meta(&mf, NULL, "k", "v"), DT_OK);
    cr_expect_eq(model_file_add_meta(&mf, NULL, "k", "v"), DT_E_INTERNAL);
}
