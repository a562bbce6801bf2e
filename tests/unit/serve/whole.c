/*
 * whole.c - locking variable through the real dispatch: one home, whole messages, whole answers.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

TestSuite(whole, .timeout = 120);

#define SLICES 3
#define ELEMENTS (2 * DT_SLICE_ELEMENTS + 5)

struct fixture {
    struct cluster *c;
    struct worker_at w[2];
    uint32_t home;
    uint32_t n[SLICES];
    float *minus_one; /* a slice of -1: at rate 1 an update adds 1 */
};

/* Initial values of all slices, one INIT each: that may come in pieces. */
static void
initialise(struct fixture *f, const struct dt_declaration *d)
{
    float *zeros = calloc(DT_SLICE_ELEMENTS, sizeof(float));
    const float *frame = zeros;
    enum dt_status status;
    uint32_t k, shard;

    cr_assert_eq(worker_init_done(f->c, &f->w[0], d, 1, false, &status), DT_INIT_GRANTED);
    for (k = 0; k < SLICES; k++) {
        enum dt_status taken = DT_R_NO_VARIABLE;

        for (shard = 0; shard < 2 && taken != DT_OK; shard++) {
            struct dt_data m = {.n_items = 1};
            struct answer *a;

            m.items[0].slice = k;
            a = cluster_take(f->c,
                             worker_data(f->c, &f->w[0], shard, DT_OP_INIT, &m, &frame, &f->n[k]));
            taken = a->head.status;
            answer_free(a);
            if (taken == DT_OK && k == 0)
                f->home = shard;
            if (taken == DT_OK)
                cr_assert_eq(shard, f->home, "one home for all slices");
        }
        cr_assert_eq(taken, DT_OK);
    }
    cr_assert_eq(worker_init_done(f->c, &f->w[0], d, 1, true, &status), DT_INIT_COMPLETE);
    free(zeros);
}

static void
start(struct fixture *f)
{
    struct dt_declaration d = {
        .name = "v", .n_dims = 1, .shape = {ELEMENTS}, .optimizer = "sgd", .init = "zeros"};
    struct dt_job_params p;
    uint32_t i;

    memset(f, 0, sizeof(*f));
    f->c = cluster_create(2);
    dt_job_params_default(&p);
    p.workers = 2;
    p.consistency = DT_ASYNC;
    p.locking = DT_LOCK_VARIABLE;
    d.n_params = 1;
    strcpy(d.params[0].name, "lr");
    d.params[0].value = 1;
    for (i = 0; i < SLICES; i++)
        f->n[i] = dt_slice_elements(ELEMENTS, i);
    f->minus_one = malloc(DT_SLICE_BYTES);
    for (i = 0; i < DT_SLICE_ELEMENTS; i++)
        f->minus_one[i] = -1;
    for (i = 0; i < 2; i++) {
        worker_at_init(&f->w[i], i);
        worker_hello_all(f->c, &f->w[i], "job", &p);
        cr_assert_eq(worker_declare(f->c, &f->w[i], &d, 1), DT_OK);
    }
    initialise(f, &d);
}

static void
end(struct fixture *f)
{
    cluster_destroy(f->c);
    free(f->minus_one);
}

/* A request of slices 0..n-1 at `version`, which want `want`; its id. */
static uint64_t
ask(struct fixture *f, enum dt_op op, uint32_t n, uint64_t version, uint64_t want)
{
    const float *frames[SLICES + 1] = {f->minus_one, f->minus_one, f->minus_one, f->minus_one};
    uint32_t elements[SLICES + 1], i;
    struct dt_data m = {.weight = 1, .count = 1, .n_items = n};

    if (op != DT_OP_PULL)
        m.counter = ++f->w[0].counter;
    for (i = 0; i < n; i++) {
        m.items[i].slice = i % SLICES;
        m.items[i].version = op == DT_OP_PULL ? DT_NO_VERSION : version;
        m.items[i].want = want;
        elements[i] = f->n[i % SLICES];
    }
    return worker_data(f->c, &f->w[op == DT_OP_PULL], f->home, op, &m,
                       op == DT_OP_PULL ? NULL : frames, elements);
}

static enum dt_status
status_of(struct fixture *f, uint64_t id)
{
    struct answer *a = cluster_take(f->c, id);
    enum dt_status status;

    cr_assert_not_null(a);
    status = a->head.status;
    answer_free(a);
    return status;
}

Test(whole, a_part_of_a_variable_is_refused)
{
    struct fixture f;

    start(&f);
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PUSH, 1, 0, 0)), DT_R_BAD_VALUE);
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PUSHPULL, 2, 0, 0)), DT_R_BAD_VALUE);
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PULL, 2, 0, 0)), DT_R_BAD_VALUE);
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PULL, SLICES + 1, 0, 0)), DT_R_BAD_VALUE, "twice");
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PULL, SLICES, 0, 0)), DT_OK);
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PUSH, SLICES, 0, 0)), DT_OK);
    end(&f);
}

Test(whole, a_push_has_one_version)
{
    const float *frames[SLICES];
    struct dt_data m = {.counter = 1, .weight = 1, .count = 1, .n_items = SLICES};
    struct fixture f;
    uint32_t i;

    start(&f);
    for (i = 0; i < SLICES; i++) {
        frames[i] = f.minus_one;
        m.items[i].slice = i;
        m.items[i].version = i == 1; /* ahead: it alone would not be applied */
    }
    cr_assert_eq(status_of(&f, worker_data(f.c, &f.w[0], f.home, DT_OP_PUSH, &m, frames, f.n)),
                 DT_R_BAD_VALUE);
    end(&f);
}

Test(whole, who_is_woken_sees_the_whole_push)
{
    struct fixture f;
    struct dt_data m = {.n_items = SLICES};
    struct answer *a;
    uint64_t id;
    uint32_t i;

    start(&f);
    for (i = 0; i < SLICES; i++) { /* waits for the first slice alone */
        m.items[i] = (struct dt_item){0, i, DT_NO_VERSION, i == 0};
    }
    id = worker_data(f.c, &f.w[1], f.home, DT_OP_PULL, &m, NULL, NULL);
    cr_assert_eq(status_of(&f, id), DT_PARKED);
    cr_assert_eq(status_of(&f, ask(&f, DT_OP_PUSH, SLICES, 0, 0)), DT_OK);
    a = cluster_take(f.c, id);
    cr_assert_not_null(a);
    cr_assert_eq(a->head.status, DT_OK);
    for (i = 0; i < SLICES; i++)
        cr_assert(a->frames[i][0] == 1 && a->frames[i][f.n[i] - 1] == 1, "slice %u", i);
    answer_free(a);
    end(&f);
}

Test(whole, what_is_no_message_is_refused_at_declare)
{
    struct cluster *c = cluster_create(1);
    struct dt_declaration d = {.name = "v", .n_dims = 1, .optimizer = "sgd", .init = "zeros"};
    struct dt_job_params p;
    struct worker_at w;

    d.n_params = 1;
    strcpy(d.params[0].name, "lr");
    dt_job_params_default(&p);
    p.locking = DT_LOCK_VARIABLE;
    worker_at_init(&w, 0);
    cr_assert_eq(worker_hello(c, &w, 0, "job", &p, false, &(struct dt_hello_reply){0}),
                 DT_R_BAD_VALUE, "a synchronous job");
    p.consistency = DT_SSP;
    worker_hello_all(c, &w, "job", &p);
    d.shape[0] = 64ull * DT_SLICE_ELEMENTS + 1;
    cr_assert_eq(worker_declare(c, &w, &d, 1), DT_R_BAD_VALUE);
    d.shape[0]--;
    cr_assert_eq(worker_declare(c, &w, &d, 1), DT_OK);
    cluster_destroy(c);
}
