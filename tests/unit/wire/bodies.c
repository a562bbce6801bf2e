/*
 * bodies.c - body frames: declarations and job parameters.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/wire/samples.h"

TestSuite(bodies, .timeout = 120);

static struct dt_declaration
dense(void)
{
    struct dt_declaration d = {.n_dims = 2, .shape = {784, 10}, .n_params = 1, .seed = 5};

    strcpy(d.name, "dense/kernel");
    strcpy(d.optimizer, "sgd");
    strcpy(d.init, "zeros");
    d.params[0] = (struct dt_optimizer_param){"lr", 0.1f};
    return d;
}

static enum dt_status
round_trip(const struct dt_declaration *d, struct dt_declaration *got, struct dt_error *err)
{
    struct dt_buffer b = {0};
    struct dt_reader r;
    enum dt_status status;

    dt_declaration_encode(&b, d);
    cr_assert_not(b.failed);
    dt_reader_init(&r, b.data, b.len);
    status = dt_declaration_decode(&r, got, err);
    if (status == DT_OK)
        cr_assert_eq(r.left, 0);
    dt_buffer_deinit(&b);
    return status;
}

Test(bodies, declaration)
{
    struct dt_declaration d, got;
    struct dt_error err;

    sample_declaration(&d);
    cr_assert_eq(round_trip(&d, &got, &err), DT_OK);
    cr_assert_eq(memcmp(&d, &got, sizeof(d)), 0);
    d = dense();
    cr_assert_eq(round_trip(&d, &got, &err), DT_OK);
    cr_assert_eq(memcmp(&d, &got, sizeof(d)), 0);
}

Test(bodies, declaration_ranges)
{
    struct dt_declaration d = dense(), got;
    struct dt_error err;

    strcpy(d.name, "a b");
    cr_assert_eq(round_trip(&d, &got, &err), DT_R_BAD_VALUE);
    d = dense();
    d.params[0].value = NAN;
    cr_assert_eq(round_trip(&d, &got, &err), DT_R_BAD_VALUE);
    cr_assert_not_null(strstr(err.text, "dense/kernel"));
    d = dense();
    d.params[1] = d.params[0];
    d.n_params = 2;
    cr_assert_eq(round_trip(&d, &got, &err), DT_R_BAD_VALUE, "lr twice");
    d = dense();
    d.optimizer[0] = '\0';
    cr_assert_eq(round_trip(&d, &got, &err), DT_R_BAD_VALUE);
    d = dense();
    d.task = DT_MAX_TASKS;
    cr_assert_eq(round_trip(&d, &got, &err), DT_R_BAD_VALUE);
    d = dense();
    d.n_dims = DT_MAX_DIMS;
    cr_assert_eq(round_trip(&d, &got, &err), DT_OK, "a dimension of 0 is read");
    cr_assert_eq(dt_declaration_elements(&got), 0, "and has no elements");
}

Test(bodies, elements_are_counted_without_overflow)
{
    struct dt_declaration d = dense();

    cr_assert_eq(dt_declaration_elements(&d), 7840);
    d.n_dims = 0;
    cr_assert_eq(dt_declaration_elements(&d), 1, "a scalar");
    d.n_dims = 2;
    d.shape[0] = 1ull << 20;
    d.shape[1] = 1ull << 20;
    cr_assert_eq(dt_declaration_elements(&d), 1ull << 40);
    d.shape[1]++;
    cr_assert_eq(dt_declaration_elements(&d), 0);
    d.shape[0] = 1ull << 32;
    d.shape[1] = 1ull << 32;
    cr_assert_eq(dt_declaration_elements(&d), 0, "the product is 2^64");
    d.shape[0] = d.shape[1] = UINT64_MAX;
    cr_assert_eq(dt_declaration_elements(&d), 0);
    cr_assert_eq(dt_n_slices(262144), 1);
    cr_assert_eq(dt_n_slices(262145), 2);
    cr_assert_eq(dt_slice_elements(262145, 1), 1);
}

Test(bodies, declarations_compare_with_both_values)
{
    struct dt_declaration job = dense(), mine = dense();
    struct dt_error err;

    cr_assert_eq(dt_declaration_compare(&job, &mine, &err), DT_OK);
    mine.shape[1] = 20;
    cr_assert_eq(dt_declaration_compare(&job, &mine, &err), DT_R_MISMATCH);
    cr_assert_str_eq(err.text, "variable dense/kernel: shape: the job has [784, 10], this worker "
                               "says [784, 20]");
    mine = dense();
    mine.params[0].value = 0.25f;
    cr_assert_eq(dt_declaration_compare(&job, &mine, &err), DT_R_MISMATCH);
    cr_assert_not_null(strstr(err.text, "lr: the job has 0.1, this worker says 0.25"));
    mine = dense();
    mine.n_params = 0;
    cr_assert_eq(dt_declaration_compare(&job, &mine, &err), DT_R_MISMATCH);
    cr_assert_not_null(strstr(err.text, "lr: the job has 0.1, this worker says nothing"));
    cr_assert_eq(dt_declaration_compare(&mine, &job, &err), DT_R_MISMATCH);
    cr_assert_not_null(strstr(err.text, "lr: the job has nothing, this worker says 0.1"));
    mine = dense();
    mine.seed++;
    cr_assert_eq(dt_declaration_compare(&job, &mine, NULL), DT_R_MISMATCH);
}

Test(bodies, a_fingerprint_does_not_depend_on_the_order_of_parameters)
{
    struct dt_declaration a = dense(), b;

    a.n_params = 2;
    a.params[1] = (struct dt_optimizer_param){"decay", 0.5f};
    b = a;
    b.params[0] = a.params[1];
    b.params[1] = a.params[0];
    cr_assert_eq(dt_declaration_fingerprint(DT_FINGERPRINT_START, &a),
                 dt_declaration_fingerprint(DT_FINGERPRINT_START, &b));
    cr_assert_eq(dt_declaration_compare(&a, &b, NULL), DT_OK);
    b.task++;
    cr_assert_neq(dt_declaration_fingerprint(DT_FINGERPRINT_START, &a),
                  dt_declaration_fingerprint(DT_FINGERPRINT_START, &b));
}

/* FNV-1a 64 of the bytes that any msgpack library writes for these fields, computed apart. */
Test(bodies, a_fingerprint_is_fnv_of_the_encoded_bytes)
{
    static const unsigned char bytes[] = "\x98\xac"
                                         "dense/kernel\xa3"
                                         "f32\x92\xcd\x03\x10\x0a\xa3"
                                         "sgd\x81\xa2lr\xca\x3d\xcc\xcc\xcd\xa5zeros\x05\x00";
    struct dt_declaration d = dense();
    uint64_t h = DT_FINGERPRINT_START;
    size_t i;

    for (i = 0; i < sizeof(bytes) - 1; i++)
        h = (h ^ bytes[i]) * 1099511628211ull;
    cr_assert_eq(dt_declaration_fingerprint(DT_FINGERPRINT_START, &d), h);
}

Test(bodies, params)
{
    struct dt_job_params p, got;
    struct dt_buffer b = {0};
    struct dt_error err = {DT_OK, ""};

    dt_job_params_default(&p);
    cr_assert(p.workers == 1 && p.tasks == 1 && p.lease_ms == 10000 && p.max_bad == 10);
    p.workers = DT_MAX_RANKS;
    p.reduce = DT_REDUCE_COUNT;
    p.on_loss = DT_ON_LOSS_FAIL;
    p.round_timeout_ms = 31536000000;
    p.deterministic = 1;
    strcpy(p.kernel, "an-eighteen-core-23-byt");
    dt_job_params_encode(&b, &p);
    cr_assert_eq(dt_job_params_decode(&got, b.data, b.len, &err), DT_OK, "%s", err.text);
    cr_assert_eq(memcmp(&p, &got, sizeof(p)), 0);
    dt_buffer_deinit(&b);
}

static enum dt_status
decode_two(const char *key, int64_t v, const char *text, struct dt_job_params *p,
           struct dt_error *err)
{
    struct dt_buffer b = {0};
    enum dt_status status;

    dt_write_map(&b, 2);
    dt_write_str(&b, "workers");
    dt_write_u64(&b, 4);
    dt_write_str(&b, key);
    if (text)
        dt_write_str(&b, text);
    else
        dt_write_i64(&b, v);
    status = dt_job_params_decode(p, b.data, b.len, err);
    dt_buffer_deinit(&b);
    return status;
}

Test(bodies, params_have_limits_that_the_text_names)
{
    struct dt_job_params p;
    struct dt_error err;

    cr_assert_eq(decode_two("lease_ms", 100, NULL, &p, &err), DT_OK);
    cr_assert_eq(decode_two("lease_ms", 99, NULL, &p, &err), DT_R_BAD_VALUE);
    cr_assert(strstr(err.text, "lease_ms") && strstr(err.text, "100") &&
              strstr(err.text, "3600000"));
    cr_assert_eq(decode_two("lease_ms", 0, "10s", &p, &err), DT_R_BAD_VALUE);
    cr_assert_eq(decode_two("aggregate", -1, NULL, &p, &err), DT_R_BAD_VALUE);
    cr_assert_eq(decode_two("workers", 1025, NULL, &p, &err), DT_R_BAD_VALUE);
    cr_assert_eq(decode_two("reduce", 0, "median", &p, &err), DT_R_BAD_VALUE);
    cr_assert(strstr(err.text, "mean, count or sum"));
    cr_assert_eq(decode_two("reduce", 1, NULL, &p, &err), DT_R_BAD_VALUE);
    cr_assert_eq(decode_two("reduce", 0, "sum", &p, &err), DT_OK);
    cr_assert_eq(p.reduce, DT_REDUCE_SUM);
    cr_assert_eq(decode_two("from_the_future", 0, "x", &p, &err), DT_OK, "unknown keys");
    cr_assert_eq(p.workers, 4);
    cr_assert_eq(dt_job_params_decode(&p, "\x80", 1, &err), DT_R_BAD_VALUE, "workers is required");
    cr_assert_eq(dt_job_params_decode(&p, "", 0, &err), DT_R_MALFORMED);
}

Test(bodies, params_compare_with_both_values)
{
    struct dt_job_params a, b;
    struct dt_error err;

    dt_job_params_default(&a);
    b = a;
    cr_assert_eq(dt_job_params_compare(&a, &b, &err), DT_OK);
    a.aggregate = 2;
    b.aggregate = 3;
    cr_assert_eq(dt_job_params_compare(&a, &b, &err), DT_R_MISMATCH);
    cr_assert_str_eq(err.text, "aggregate: the job has 2, this worker says 3");
    b = a;
    b.reduce = DT_REDUCE_SUM;
    cr_assert_eq(dt_job_params_compare(&a, &b, &err), DT_R_MISMATCH);
    cr_assert_str_eq(err.text, "reduce: the job has mean, this worker says sum");
}
