/*
 * declare.c - declarations of variables: decode, encode, fingerprint.
 *
 * Invariant: equal declarations give equal bytes (the optimizer's parameters are written in order
 * of their names), so that a fingerprint can stand for them. Any thread.
 */
#include "proto/wire/declare.h"

#include <math.h>
#include <string.h>

#include "proto/base/parse.h"
#include "proto/wire/tuple.h"

#define MAX_ELEMENTS (1ull << 40)
#define DTYPE "f32"

uint64_t
dt_declaration_elements(const struct dt_declaration *d)
{
    unsigned __int128 product = 1;
    uint32_t i;

    for (i = 0; i < d->n_dims && i < DT_MAX_DIMS; i++) {
        if (d->shape[i] == 0)
            return 0;
        /* at most 2^40 so far: the product fits */
        product *= d->shape[i];
        if (product > MAX_ELEMENTS)
            return 0;
    }
    return (uint64_t)product;
}

void
dt_declare_encode(struct dt_buffer *b, uint64_t request, uint64_t session)
{
    dt_head_request(b, DT_OP_DECLARE, request, session, 0);
}

/* The parameters in order of their names. */
static void
sort_params(const struct dt_declaration *d, uint32_t order[DT_MAX_OPTIMIZER_PARAMS])
{
    uint32_t i, k;

    for (i = 0; i < d->n_params; i++) {
        for (k = i; k > 0 && strcmp(d->params[order[k - 1]].name, d->params[i].name) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

void
dt_declaration_encode(struct dt_buffer *body, const struct dt_declaration *d)
{
    uint32_t order[DT_MAX_OPTIMIZER_PARAMS];
    uint32_t i;

    sort_params(d, order);
    dt_write_array(body, 8);
    dt_write_str(body, d->name);
    dt_write_str(body, DTYPE);
    dt_write_array(body, d->n_dims);
    for (i = 0; i < d->n_dims; i++)
        dt_write_u64(body, d->shape[i]);
    dt_write_str(body, d->optimizer);
    dt_write_map(body, d->n_params);
    for (i = 0; i < d->n_params; i++) {
        dt_write_str(body, d->params[order[i]].name);
        dt_write_float(body, d->params[order[i]].value);
    }
    dt_write_str(body, d->init);
    dt_write_u64(body, d->seed);
    dt_write_u64(body, d->task);
}

static void
read_shape(struct dt_reader *r, struct dt_declaration *d)
{
    uint32_t i;

    d->n_dims = dt_read_array(r, DT_MAX_DIMS);
    for (i = 0; i < d->n_dims; i++)
        d->shape[i] = dt_read_u64(r);
}

static void
read_params(struct dt_reader *r, struct dt_declaration *d)
{
    uint32_t i;

    d->n_params = dt_read_map(r, DT_MAX_OPTIMIZER_PARAMS);
    for (i = 0; i < d->n_params; i++) {
        double v;

        dt_read_cstr(r, d->params[i].name, sizeof(d->params[i].name));
        v = dt_read_double(r);
        /* compared as a double: the conversion of a greater one is undefined */
        d->params[i].value = fabs(v) <= 3.4028234663852886e38 ? (float)v : NAN;
    }
}

static bool
are_params_legal(const struct dt_declaration *d)
{
    uint32_t i, k;

    for (i = 0; i < d->n_params; i++) {
        if (!dt_is_name(d->params[i].name) || !isfinite(d->params[i].value))
            return false;
        for (k = 0; k < i; k++) {
            if (!strcmp(d->params[k].name, d->params[i].name))
                return false;
        }
    }
    return true;
}

static enum dt_status
check(const struct dt_declaration *d, const char *dtype, struct dt_error *err)
{
    if (!dt_is_name(d->name))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "a variable's name must be 1 to %d characters of A-Z a-z 0-9 _ . / : -",
                       DT_MAX_NAME);
    if (strcmp(dtype, DTYPE) != 0)
        return dt_fail(err, DT_R_BAD_VALUE, "variable %s: dtype must be " DTYPE, d->name);
    if (!dt_is_name(d->optimizer) || !dt_is_name(d->init))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "variable %s: optimizer and init must be names, such as sgd and zeros",
                       d->name);
    if (!are_params_legal(d))
        return dt_fail(err, DT_R_BAD_VALUE,
                       "variable %s: optimizer parameters must be finite numbers, each named once",
                       d->name);
    if (d->task >= DT_MAX_TASKS)
        return dt_fail(err, DT_R_BAD_VALUE, "variable %s: task must be below %d", d->name,
                       DT_MAX_TASKS);
    return DT_OK;
}

enum dt_status
dt_declaration_decode(struct dt_reader *r, struct dt_declaration *d, struct dt_error *err)
{
    struct dt_tuple t;
    char dtype[24];

    memset(d, 0, sizeof(*d));
    dt_tuple_open(&t, r);
    if (t.n_left < 6) /* seed and task have defaults */
        return dt_fail(err, DT_R_MALFORMED, "a declaration is no array of 6 or more fields");
    t.n_left -= 6;
    dt_read_cstr(r, d->name, sizeof(d->name));
    dt_read_cstr(r, dtype, sizeof(dtype));
    read_shape(r, d);
    dt_read_cstr(r, d->optimizer, sizeof(d->optimizer));
    read_params(r, d);
    dt_read_cstr(r, d->init, sizeof(d->init));
    d->seed = dt_tuple_u64(&t, UINT64_MAX, 0);
    d->task = (uint32_t)dt_tuple_u64(&t, UINT32_MAX, 0);
    dt_tuple_close(&t);
    if (r->failed)
        return dt_fail(err, DT_R_MALFORMED, "a declaration has a field of a wrong type or size");
    return check(d, dtype, err);
}

/* "[784, 10]"; 8 dimensions of 20 digits fit. */
static const char *
print_shape(const struct dt_declaration *d, struct dt_buffer *b)
{
    uint32_t i;

    dt_buffer_printf(b, "[");
    for (i = 0; i < d->n_dims; i++)
        dt_buffer_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)d->shape[i]);
    dt_buffer_printf(b, "]");
    return dt_buffer_str(b);
}

static enum dt_status
fail_shape(const struct dt_declaration *job, const struct dt_declaration *mine,
           struct dt_error *err)
{
    struct dt_buffer a = {0}, b = {0};

    dt_fail(err, DT_R_MISMATCH, "variable %s: shape: the job has %s, this worker says %s",
            job->name, print_shape(job, &a), print_shape(mine, &b));
    dt_buffer_deinit(&a);
    dt_buffer_deinit(&b);
    return DT_R_MISMATCH;
}

static enum dt_status
compare_text(const struct dt_declaration *job, const char *what, const char *has, const char *says,
             struct dt_error *err)
{
    if (!strcmp(has, says))
        return DT_OK;
    return dt_fail(err, DT_R_MISMATCH, "variable %s: %s: the job has %s, this worker says %s",
                   job->name, what, has, says);
}

static enum dt_status
compare_number(const struct dt_declaration *job, const char *what, uint64_t has, uint64_t says,
               struct dt_error *err)
{
    if (has == says)
        return DT_OK;
    return dt_fail(err, DT_R_MISMATCH, "variable %s: %s: the job has %llu, this worker says %llu",
                   job->name, what, (unsigned long long)has, (unsigned long long)says);
}

static const struct dt_optimizer_param *
find_param(const struct dt_declaration *d, const char *name)
{
    uint32_t i;

    for (i = 0; i < d->n_params; i++) {
        if (!strcmp(d->params[i].name, name))
            return &d->params[i];
    }
    return NULL;
}

/* The value of a parameter, "nothing" where it has none. */
static const char *
print_param(const struct dt_optimizer_param *p, char out[DT_NUMBER_TEXT])
{
    if (!p)
        return "nothing";
    dt_format_float(p->value, out);
    return out;
}

static enum dt_status
compare_param(const struct dt_declaration *job, const struct dt_declaration *mine, const char *name,
              struct dt_error *err)
{
    const struct dt_optimizer_param *a = find_param(job, name), *b = find_param(mine, name);
    char has[DT_NUMBER_TEXT], says[DT_NUMBER_TEXT];

    if (a && b && memcmp(&a->value, &b->value, sizeof(a->value)) == 0)
        return DT_OK;
    return dt_fail(err, DT_R_MISMATCH, "variable %s: %s: the job has %s, this worker says %s",
                   job->name, name, print_param(a, has), print_param(b, says));
}

static enum dt_status
compare_params(const struct dt_declaration *job, const struct dt_declaration *mine,
               struct dt_error *err)
{
    enum dt_status status = DT_OK;
    uint32_t i;

    for (i = 0; status == DT_OK && i < job->n_params; i++)
        status = compare_param(job, mine, job->params[i].name, err);
    for (i = 0; status == DT_OK && i < mine->n_params; i++)
        status = compare_param(job, mine, mine->params[i].name, err);
    return status == DT_OK
               ? compare_number(job, "optimizer parameters", job->n_params, mine->n_params, err)
               : status;
}

enum dt_status
dt_declaration_compare(const struct dt_declaration *job, const struct dt_declaration *mine,
                       struct dt_error *err)
{
    enum dt_status status = compare_text(job, "name", job->name, mine->name, err);

    if (status == DT_OK && (job->n_dims != mine->n_dims ||
                            memcmp(job->shape, mine->shape, job->n_dims * sizeof(job->shape[0]))))
        status = fail_shape(job, mine, err);
    if (status == DT_OK)
        status = compare_text(job, "optimizer", job->optimizer, mine->optimizer, err);
    if (status == DT_OK)
        status = compare_params(job, mine, err);
    if (status == DT_OK)
        status = compare_text(job, "init", job->init, mine->init, err);
    if (status == DT_OK)
        status = compare_number(job, "seed", job->seed, mine->seed, err);
    if (status == DT_OK)
        status = compare_number(job, "task", job->task, mine->task, err);
    return status;
}

uint64_t
dt_declaration_fingerprint(uint64_t so_far, const struct dt_declaration *d)
{
    struct dt_buffer b = {0};
    size_t i;

    dt_declaration_encode(&b, d);
    for (i = 0; i < b.len; i++)
        so_far = (so_far ^ b.data[i]) * 0x100000001b3ull;
    dt_buffer_deinit(&b);
    return so_far;
}
