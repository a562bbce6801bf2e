/*
 * params.c - job parameters: one table drives defaults, encode, decode and compare.
 *
 * Invariant: a decoded set is within the limits of the table. Any thread.
 */
#include "proto/wire/params.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire/tuple.h"

#define MAX_KEYS 256
#define MAX_KEY_BYTES 64
#define MAX_CHOICES 3
#define YEAR_MS INT64_C(31536000000)

struct row {
    const char *key;
    size_t offset;
    bool wide; /* int64_t, else uint32_t */
    int64_t def, min, max;
    const char *choices[MAX_CHOICES]; /* texts on the wire; [0] NULL: a number */
    size_t text_bytes;                /* a text with its NUL; 0: none */
};

#define FIELD(name) .key = #name, .offset = offsetof(struct dt_job_params, name)

static const struct row table[] = {
    {FIELD(workers), false, 1, 1, DT_MAX_RANKS, {NULL}},
    {FIELD(tasks), false, 1, 1, DT_MAX_TASKS, {NULL}},
    {FIELD(consistency), false, DT_SYNC, 0, 2, {"sync", "async", "ssp"}},
    {FIELD(locking), false, DT_LOCK_SLICE, 0, 2, {"slice", "none", "variable"}},
    {FIELD(aggregate), false, 0, 0, DT_MAX_RANKS, {NULL}},
    {FIELD(reduce), false, DT_REDUCE_MEAN, 0, 2, {"mean", "count", "sum"}},
    {FIELD(on_loss), false, DT_ON_LOSS_SHRINK, 0, 1, {"shrink", "fail", NULL}},
    {FIELD(lease_ms), true, 10000, 100, 3600000, {NULL}},
    {FIELD(start_timeout_ms), true, 0, 0, YEAR_MS, {NULL}},
    {FIELD(round_timeout_ms), true, 0, 0, YEAR_MS, {NULL}},
    {FIELD(max_bad), false, 10, 0, INT32_MAX, {NULL}},
    {FIELD(max_staleness), true, -1, -1, INT64_MAX, {NULL}},
    {FIELD(staleness_bound), true, 0, 0, DT_MAX_CLOCK, {NULL}},
    {FIELD(deterministic), false, 0, 0, 1, {"no", "yes", NULL}},
    {FIELD(kernel), .text_bytes = DT_KERNEL_BYTES},
};

#define N_ROWS (sizeof(table) / sizeof(table[0]))

static int64_t
get(const struct dt_job_params *p, const struct row *row)
{
    const char *field = (const char *)p + row->offset;
    uint32_t narrow;
    int64_t wide;

    if (row->wide) {
        memcpy(&wide, field, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, field, sizeof(narrow));
    return narrow;
}

static void
set(struct dt_job_params *p, const struct row *row, int64_t v)
{
    char *field = (char *)p + row->offset;
    uint32_t narrow = (uint32_t)v;

    if (row->wide)
        memcpy(field, &v, sizeof(v));
    else
        memcpy(field, &narrow, sizeof(narrow));
}

void
dt_job_params_default(struct dt_job_params *p)
{
    size_t i;

    memset(p, 0, sizeof(*p));
    for (i = 0; i < N_ROWS; i++) {
        if (!table[i].text_bytes)
            set(p, &table[i], table[i].def);
    }
}

static const char *
get_text(const struct dt_job_params *p, const struct row *row)
{
    return (const char *)p + row->offset;
}

/* The wire text of an enumeration's value; NULL: it is none, or the value has no text. */
static const char *
choice_text(const struct row *row, int64_t v)
{
    return v >= 0 && v < MAX_CHOICES ? row->choices[v] : NULL;
}

static void
write_value(struct dt_buffer *body, const struct dt_job_params *p, const struct row *row)
{
    int64_t v = row->text_bytes ? 0 : get(p, row);
    const char *text = row->text_bytes ? get_text(p, row) : choice_text(row, v);

    if (text)
        dt_write_str(body, text);
    else
        dt_write_i64(body, v);
}

void
dt_job_params_encode(struct dt_buffer *body, const struct dt_job_params *p)
{
    size_t i;

    dt_write_map(body, N_ROWS);
    for (i = 0; i < N_ROWS; i++) {
        dt_write_str(body, table[i].key);
        write_value(body, p, &table[i]);
    }
}

static enum dt_status
decode_choice(struct dt_reader *r, const struct row *row, int64_t *v, struct dt_error *err)
{
    char text[16];
    int64_t i;

    dt_read_cstr(r, text, sizeof(text));
    for (i = 0; !r->failed && i < MAX_CHOICES && row->choices[i]; i++) {
        if (!strcmp(text, row->choices[i])) {
            *v = i;
            return DT_OK;
        }
    }
    return dt_fail(err, DT_R_BAD_VALUE, "job parameter %s: must be %s, %s%s%s", row->key,
                   row->choices[0], row->choices[1], row->choices[2] ? " or " : "",
                   row->choices[2] ? row->choices[2] : "");
}

/* Printable: it stands in logs. */
static enum dt_status
decode_text(struct dt_reader *r, struct dt_job_params *p, const struct row *row,
            struct dt_error *err)
{
    char *text = (char *)p + row->offset;

    dt_read_text(r, text, row->text_bytes);
    if (!r->failed)
        return DT_OK;
    return dt_fail(err, DT_R_BAD_VALUE, "job parameter %s: must be a text of at most %zu bytes",
                   row->key, row->text_bytes - 1);
}

static enum dt_status
decode_value(struct dt_reader *r, struct dt_job_params *p, const struct row *row,
             struct dt_error *err)
{
    enum dt_status status = DT_OK;
    int64_t v = 0;

    if (row->text_bytes)
        return decode_text(r, p, row, err);
    if (row->choices[0]) {
        status = decode_choice(r, row, &v, err);
    } else {
        v = dt_read_i64(r);
        if (r->failed || v < row->min || v > row->max)
            status =
                dt_fail(err, DT_R_BAD_VALUE,
                        "job parameter %s: must be a whole number from %" PRId64 " to %" PRId64,
                        row->key, row->min, row->max);
    }
    if (status == DT_OK)
        set(p, row, v);
    return status;
}

static const struct row *
find_row(struct dt_bytes key)
{
    size_t i;

    for (i = 0; i < N_ROWS; i++) {
        if (strlen(table[i].key) == key.len && !memcmp(table[i].key, key.p, key.len))
            return &table[i];
    }
    return NULL;
}

static enum dt_status
fail_malformed(struct dt_error *err)
{
    return dt_fail(err, DT_R_MALFORMED, "the job parameters are no map of name to value");
}

enum dt_status
dt_job_params_decode(struct dt_job_params *p, const void *body, size_t bytes, struct dt_error *err)
{
    struct dt_reader r;
    uint32_t i, n;
    bool have_workers = false;

    dt_job_params_default(p);
    if (bytes > DT_MAX_BODY_BYTES || !dt_is_one_object(body, bytes))
        return fail_malformed(err);
    dt_reader_init(&r, body, bytes);
    n = dt_read_map(&r, MAX_KEYS);
    for (i = 0; i < n && !r.failed; i++) {
        const struct row *row = find_row(dt_read_str(&r, MAX_KEY_BYTES));
        enum dt_status status = DT_OK;

        if (row)
            status = decode_value(&r, p, row, err);
        else
            dt_read_skip(&r);
        if (status != DT_OK)
            return status;
        have_workers = have_workers || row == &table[0];
    }
    if (r.failed)
        return fail_malformed(err);
    if (!have_workers)
        return dt_fail(err, DT_R_BAD_VALUE, "job parameter workers is missing: 1 to %d",
                       DT_MAX_RANKS);
    return DT_OK;
}

static void
print_value(const struct dt_job_params *p, const struct row *row, char out[32])
{
    int64_t v = row->text_bytes ? 0 : get(p, row);
    const char *text = row->text_bytes ? get_text(p, row) : choice_text(row, v);

    if (text)
        snprintf(out, 32, "%s", *text ? text : "none");
    else
        snprintf(out, 32, "%" PRId64, v);
}

static bool
is_equal(const struct row *row, const struct dt_job_params *a, const struct dt_job_params *b)
{
    if (row->text_bytes)
        return !strcmp(get_text(a, row), get_text(b, row));
    return get(a, row) == get(b, row);
}

enum dt_status
dt_job_params_compare(const struct dt_job_params *job, const struct dt_job_params *mine,
                      struct dt_error *err)
{
    char has[32], says[32];
    size_t i;

    for (i = 0; i < N_ROWS; i++) {
        if (is_equal(&table[i], job, mine))
            continue;
        print_value(job, &table[i], has);
        print_value(mine, &table[i], says);
        return dt_fail(err, DT_R_MISMATCH, "%s: the job has %s, this worker says %s", table[i].key,
                       has, says);
    }
    return DT_OK;
}
