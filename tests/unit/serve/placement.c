/*
 * placement.c - ADMIN_PLACEMENT through the real dispatch: what a page says, paging over many variables,
 * unknown jobs and requests that are none.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "proto/wire/placement.h"

TestSuite(placement, .timeout = 80);

struct page { /* as read from a reply */
    char name[DT_MAX_NAME + 1];
    uint64_t job_id, ps_task, ps_tasks, shards, n_variables, next;
    bool is_last;
    uint32_t n;
    struct row {
        char name[DT_MAX_NAME + 1], optimizer[24];
        uint64_t id, elements, bytes, ps_task, shape[DT_MAX_DIMS];
        uint32_t n_dims, n_params, n_shards;
        double lr;
        uint64_t slices[8], shard_bytes[8];
    } rows[DT_PLACEMENT_PAGE];
};

static uint32_t
read_list(struct dt_reader *r, uint64_t *out, uint32_t max)
{
    uint32_t i, n = dt_read_array(r, max);

    for (i = 0; i < n; i++)
        out[i] = dt_read_u64(r);
    return n;
}

static void
read_params(struct dt_reader *r, struct row *row)
{
    char key[32];
    uint32_t i;

    row->n_params = dt_read_map(r, DT_MAX_OPTIMIZER_PARAMS);
    for (i = 0; i < row->n_params; i++) {
        double v;

        dt_read_cstr(r, key, sizeof(key));
        v = dt_read_double(r);
        if (!strcmp(key, "lr"))
            row->lr = v;
    }
}

static void
read_row(struct dt_reader *r, struct row *row)
{
    uint32_t n = dt_read_map(r, 32);
    char key[32];

    while (n-- && !r->failed) {
        dt_read_cstr(r, key, sizeof(key));
        if (!strcmp(key, "name"))
            dt_read_cstr(r, row->name, sizeof(row->name));
        else if (!strcmp(key, "optimizer"))
            dt_read_cstr(r, row->optimizer, sizeof(row->optimizer));
        else if (!strcmp(key, "id"))
            row->id = dt_read_u64(r);
        else if (!strcmp(key, "elements"))
            row->elements = dt_read_u64(r);
        else if (!strcmp(key, "bytes"))
            row->bytes = dt_read_u64(r);
        else if (!strcmp(key, "ps_task"))
            row->ps_task = dt_read_u64(r);
        else if (!strcmp(key, "shape"))
            row->n_dims = read_list(r, row->shape, DT_MAX_DIMS);
        else if (!strcmp(key, "params"))
            read_params(r, row);
        else if (!strcmp(key, "shard_slices"))
            row->n_shards = read_list(r, row->slices, 8);
        else if (!strcmp(key, "shard_bytes"))
            cr_assert_eq(read_list(r, row->shard_bytes, 8), row->n_shards);
        else
            cr_assert_fail("unknown key %s", key);
    }
}

static void
read_page(const struct answer *a, struct page *p)
{
    struct dt_reader r;
    uint32_t i, n;
    char key[32];

    memset(p, 0, sizeof(*p));
    dt_reader_init(&r, a->body.data, a->body.len);
    n = dt_read_map(&r, 32);
    while (n-- && !r.failed) {
        dt_read_cstr(&r, key, sizeof(key));
        if (!strcmp(key, "name")) {
            dt_read_cstr(&r, p->name, sizeof(p->name));
        } else if (!strcmp(key, "variables")) {
            p->n = dt_read_array(&r, DT_PLACEMENT_PAGE);
            for (i = 0; i < p->n; i++)
                read_row(&r, &p->rows[i]);
        } else if (!strcmp(key, "next")) {
            p->is_last = dt_read_nil(&r);
            if (!p->is_last)
                p->next = dt_read_u64(&r);
        } else if (!strcmp(key, "locking")) {
            dt_read_skip(&r);
        } else {
            uint64_t *field = !strcmp(key, "job_id")     ? &p->job_id
                              : !strcmp(key, "ps_task")  ? &p->ps_task
                              : !strcmp(key, "ps_tasks") ? &p->ps_tasks
                              : !strcmp(key, "shards")   ? &p->shards
                                                         : &p->n_variables;
            *field = dt_read_u64(&r);
        }
    }
    cr_assert(!r.failed && r.left == 0, "one whole object");
}

/* Sends the header (taken); the answer is owned by the caller. */
static struct answer *
ask_with(struct cluster *c, struct dt_buffer *header, uint32_t shard)
{
    struct dt_route admin = {.len = 1, .id = {'a'}};

    cluster_send(c, shard, PEER_ADMIN, &admin, header, NULL, 0);
    cluster_settle(c);
    return cluster_take(c, c->next_request);
}

static struct answer *
ask(struct cluster *c, const char *job, uint32_t first)
{
    struct dt_placement m = {.first = first};
    struct dt_buffer header = {0};

    snprintf(m.job, sizeof(m.job), "%s", job);
    dt_placement_encode(&header, ++c->next_request, &m);
    return ask_with(c, &header, 0);
}

static struct page *
fetch(struct cluster *c, const char *job, uint32_t first)
{
    struct page *p = malloc(sizeof(*p));
    struct answer *a = ask(c, job, first);

    cr_assert(p && a);
    cr_assert_eq(a->head.status, DT_OK, "%s", a->head.text);
    cr_assert_leq(a->body.len, DT_MAX_BODY_BYTES);
    read_page(a, p);
    answer_free(a);
    return p;
}

static void
describe(struct dt_declaration *d, const char *name, uint64_t rows, uint64_t columns, uint32_t task)
{
    memset(d, 0, sizeof(*d));
    snprintf(d->name, sizeof(d->name), "%s", name);
    d->n_dims = 2;
    d->shape[0] = rows;
    d->shape[1] = columns;
    strcpy(d->optimizer, "adagrad");
    d->n_params = 2;
    strcpy(d->params[0].name, "lr");
    d->params[0].value = 0.25f;
    strcpy(d->params[1].name, "eps");
    strcpy(d->init, "zeros");
    d->task = task;
}

static struct cluster *
start(uint32_t n_shards, uint32_t locking, struct dt_declaration *decls, uint32_t n)
{
    struct cluster *c = cluster_create(n_shards);
    struct dt_job_params p;
    struct worker_at w;

    dt_job_params_default(&p);
    p.tasks = 2;
    p.locking = locking;
    p.consistency = locking == DT_LOCK_NONE ? DT_ASYNC : DT_SYNC;
    worker_at_init(&w, 0);
    worker_hello_all(c, &w, "job", &p);
    cr_assert_eq(worker_declare(c, &w, decls, n), DT_OK);
    return c;
}

/* 3 slices of 1 MiB and a short one, and a variable of another task. */
static void
check_two_variables(uint32_t n_shards)
{
    struct dt_declaration decls[2];
    uint64_t slices = 0, bytes = 0;
    struct cluster *c;
    struct page *p;
    uint32_t i;

    describe(&decls[0], "big", 3, DT_SLICE_ELEMENTS + 1, 0);
    describe(&decls[1], "elsewhere", 7, 5, 1);
    c = start(n_shards, DT_LOCK_SLICE, decls, 2);
    p = fetch(c, "job", 0);
    cr_assert_str_eq(p->name, "job");
    cr_assert(p->ps_task == 0 && p->ps_tasks == 2 && p->shards == n_shards && p->is_last);
    cr_assert(p->n == 2 && p->n_variables == 2);
    cr_assert_str_eq(p->rows[0].name, "big");
    cr_assert_str_eq(p->rows[0].optimizer, "adagrad");
    cr_assert(p->rows[0].n_params == 2 && p->rows[0].lr == 0.25);
    cr_assert(p->rows[0].n_dims == 2 && p->rows[0].shape[1] == DT_SLICE_ELEMENTS + 1);
    cr_assert_eq(p->rows[0].elements, 3 * (DT_SLICE_ELEMENTS + 1));
    cr_assert_eq(p->rows[0].bytes, 12 * (DT_SLICE_ELEMENTS + 1));
    cr_assert_eq(p->rows[0].n_shards, n_shards);
    for (i = 0; i < n_shards; i++) {
        slices += p->rows[0].slices[i];
        bytes += p->rows[0].shard_bytes[i];
    }
    cr_assert(slices == 4 && bytes == p->rows[0].bytes);
    if (n_shards == 3) /* least bytes, then lowest index: 0, 1, 2, and the short one at 0 */
        cr_assert(p->rows[0].slices[0] == 2 && p->rows[0].slices[1] == 1 &&
                  p->rows[0].shard_bytes[0] == DT_SLICE_BYTES + 12);
    cr_assert(p->rows[1].id == 1 && p->rows[1].ps_task == 1 && p->rows[1].elements == 35);
    cr_assert_eq(p->rows[1].n_shards, 0, "another ps task holds it");
    free(p);
    cluster_destroy(c);
}

Test(placement, of_one_shard)
{
    check_two_variables(1);
}

Test(placement, of_several_shards)
{
    check_two_variables(3);
}

Test(placement, of_locking_none_every_shard_serves_all)
{
    struct dt_declaration d;
    struct cluster *c;
    struct page *p;

    describe(&d, "big", 3, DT_SLICE_ELEMENTS + 1, 0);
    c = start(2, DT_LOCK_NONE, &d, 1);
    p = fetch(c, "job", 0);
    cr_assert(p->rows[0].n_shards == 2 && p->rows[0].slices[0] == 4 && p->rows[0].slices[1] == 4);
    cr_assert(p->rows[0].shard_bytes[1] == p->rows[0].bytes);
    free(p);
    cluster_destroy(c);
}

Test(placement, comes_page_by_page)
{
    uint32_t n = 2 * DT_PLACEMENT_PAGE + 3, at = 0, pages = 0, i;
    struct dt_declaration *decls = calloc(n, sizeof(*decls));
    struct cluster *c;
    struct page *p;

    for (i = 0; i < n; i++) {
        char name[DT_MAX_NAME + 1];

        snprintf(name, sizeof(name), "%0*u", DT_MAX_NAME, i);
        describe(&decls[i], name, 2, 1, i % 2);
    }
    c = start(2, DT_LOCK_SLICE, decls, n);
    do {
        p = fetch(c, "job", at);
        for (i = 0; i < p->n; i++, at++)
            cr_assert(p->rows[i].id == at && !strcmp(p->rows[i].name, decls[at].name));
        cr_assert(p->is_last || p->next == at);
        pages++;
        i = p->is_last;
        free(p);
    } while (!i);
    cr_assert(at == n && pages == 3, "%u variables on %u pages", at, pages);
    p = fetch(c, "job", UINT32_MAX);
    cr_assert(p->n == 0 && p->is_last && p->n_variables == n, "past the end");
    free(p);
    free(decls);
    cluster_destroy(c);
}

static void
expect_status(struct cluster *c, struct dt_buffer *header, uint32_t shard, enum dt_status status)
{
    struct answer *a = ask_with(c, header, shard);

    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, status, "%s", a->head.text);
    cr_assert_eq(a->body.len, 0);
    answer_free(a);
}

Test(placement, what_is_no_request_is_refused)
{
    struct dt_placement m = {"job", 0};
    struct dt_declaration d;
    struct dt_buffer header = {0};
    struct cluster *c;
    struct answer *a;

    describe(&d, "v", 1, 1, 0);
    c = start(2, DT_LOCK_SLICE, &d, 1);
    a = ask(c, "other", 0);
    cr_assert_eq(a->head.status, DT_R_NO_JOB);
    cr_assert(strstr(a->head.text, "other"), "%s", a->head.text);
    answer_free(a);
    dt_head_request(&header, DT_OP_ADMIN_PLACEMENT, ++c->next_request, 0, 0);
    expect_status(c, &header, 0, DT_R_BAD_VALUE);
    dt_head_request(&header, DT_OP_ADMIN_PLACEMENT, ++c->next_request, 0, 1);
    dt_write_u64(&header, 7);
    expect_status(c, &header, 0, DT_R_MALFORMED);
    dt_head_request(&header, DT_OP_ADMIN_PLACEMENT, ++c->next_request, 0, 2);
    dt_write_str(&header, "job");
    dt_write_u64(&header, 1ull << 40);
    expect_status(c, &header, 0, DT_R_MALFORMED);
    dt_placement_encode(&header, ++c->next_request, &m);
    expect_status(c, &header, 1, DT_R_WRONG_SHARD);
    cluster_destroy(c);
}

Test(placement, a_job_without_variables_has_an_empty_page)
{
    struct cluster *c = cluster_create(2);
    struct dt_job_params params;
    struct worker_at w;
    struct page *p;

    dt_job_params_default(&params);
    worker_at_init(&w, 0);
    worker_hello_all(c, &w, "job", &params);
    p = fetch(c, "job", 0);
    cr_assert(p->n == 0 && p->n_variables == 0 && p->is_last && p->ps_tasks == 1);
    free(p);
    cluster_destroy(c);
}
