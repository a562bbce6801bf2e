/*
 * nonfinite.c - what a finite gradient that is too large does to a slice is found, and whose it was.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "proto/base/finite.h"
#include "psd/store/job.h"
#include "psd/store/variable.h"

TestSuite(nonfinite, .timeout = 80);

enum { ELEMENTS = 5 };

static const struct declared_place here = {.task = 0, .n_shards = 1, .ranks = 1};

struct house {
    struct dt_pool *pool;
    struct job_shared *shared;
    struct job *job;
    struct slice *slice;
};

/* A synchronous job of some workers, one variable of one slice; all values 1. */
static struct house
open_house(const char *rule, float lr, uint32_t workers)
{
    static const float ones[ELEMENTS] = {1, 1, 1, 1, 1};
    struct house h = {.pool = dt_pool_create(), .shared = job_shared_create()};
    struct dt_declaration d = {.name = "w", .n_dims = 1, .shape = {ELEMENTS}};
    struct dt_job_params params;
    bool first;

    strcpy(d.optimizer, rule);
    d.n_params = lr > 0;
    d.params[0] = (struct dt_optimizer_param){"lr", lr};
    dt_job_params_default(&params);
    params.workers = workers;
    h.shared->declared = declared_create(&d, 1, &here, NULL);
    h.job = job_create(1, "job", &params, h.shared, h.pool);
    cr_assert(h.job && job_declare(h.job, 0), "%s", rule);
    h.slice = job_find_slice(h.job, 0, 0);
    cr_assert(slice_set(h.slice, h.pool, ones, &first));
    h.job->initialised = true;
    return h;
}

static void
close_house(struct house *h)
{
    job_destroy(h->job);
    job_shared_destroy(h->shared);
    dt_pool_destroy(h->pool);
}

/* One element is `g`, the others are 0. */
static void
push(struct house *h, uint32_t rank, float g)
{
    static uint64_t counter;
    float gradient[ELEMENTS] = {0, 0, 0, g, 0};
    struct push p = {.rank = rank,
                     .life = 7,
                     .counter = ++counter,
                     .version = slice_version(h->slice),
                     .weight = 1,
                     .count = 1,
                     .gradient = gradient,
                     .largest = dt_largest(gradient, ELEMENTS)};
    uint64_t version;
    bool failed;

    cr_assert_eq(slice_push(h->slice, h->job, &p, 1, &version, &failed), DT_FATE_ACCUMULATED);
    slice_close_round(h->slice, h->job);
}

Test(nonfinite, every_rule_is_looked_at_when_it_was_too_much)
{
    static const struct {
        const char *rule;
        float lr, gradient;
        unsigned updates; /* after which it is found; 0: never */
        const char *slot; /* NULL: the values */
    } cases[] = {
        {"sgd", .1f, 1e30f, 0, NULL},
        {"sgd", 1e9f, 1e30f, 1, NULL},
        {"adam", .1f, 1e30f, 1, "v"},
        {"adam", .1f, 1e15f, 0, NULL},
        {"adagrad", .1f, 1e30f, 1, "accumulator"},
        {"rmsprop", .1f, 1e30f, 1, "ms"},
        {"rmsprop-centered", .1f, 1e30f, 1, "ms"},
        {"ftrl", .1f, 1e30f, 1, NULL},
        {"momentum", 1e-9f, 3e38f, 2, NULL},
        {"add", 0, 3e38f, 2, NULL},
        {"sgd", 1e28f, -1e9f, 64, NULL},  /* 35 times 1e37: found when it is looked for */
        {"sgd", 5e26f, -1e9f, 768, NULL}, /* 681 times 5e35 */
    };
    unsigned i, k;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct house h = open_house(cases[i].rule, cases[i].lr, 1);
        const struct nonfinite *f = &h.slice->nonfinite;

        for (k = 1; k <= (cases[i].updates ? cases[i].updates : 2); k++) {
            cr_assert_not(f->found || h.job->has_nonfinite, "%s: before %u", cases[i].rule, k);
            push(&h, 0, cases[i].gradient);
        }
        cr_expect_eq(f->found, cases[i].updates > 0, "case %u, %s", i, cases[i].rule);
        cr_expect_eq(h.job->has_nonfinite, f->found);
        if (f->found) {
            cr_expect_eq(f->step, cases[i].updates - 1, "%s: %u", cases[i].rule, (unsigned)f->step);
            cr_expect_eq(f->largest, fabsf(cases[i].gradient));
            if (!cases[i].slot)
                cr_expect_eq(f->slot, OPTIMIZER_MAX_SLOTS, "%s: slot %u", cases[i].rule, f->slot);
            else
                cr_expect_str_eq(optimizer_slot_name(&h.slice->variable->optimizer, f->slot),
                                 cases[i].slot);
        }
        close_house(&h);
    }
}

Test(nonfinite, the_rank_with_the_largest_gradient_is_named)
{
    struct house h = open_house("adam", .1f, 3);
    const struct nonfinite *f = &h.slice->nonfinite;

    push(&h, 2, 1e15f); /* in a round before: large, and no harm */
    push(&h, 0, 1);
    push(&h, 1, 1);
    cr_assert_not(f->found);
    push(&h, 0, 2);
    push(&h, 1, -1e30f);
    push(&h, 2, 1e14f);
    cr_assert(f->found);
    cr_assert_eq(f->rank, 1);
    cr_assert_eq(f->step, 1);
    h.job->has_nonfinite = false;
    push(&h, 0, 1);
    push(&h, 1, 1);
    push(&h, 2, 1e31f);
    cr_assert_eq(f->rank, 1, "it stays what it was");
    cr_assert_not(h.job->has_nonfinite, "and is found once");
    close_house(&h);
}
