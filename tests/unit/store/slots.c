/*
 * slots.c - what an optimizer keeps with a slice: made with the start values, advanced by an update,
 * left alone by a round or push without a divisor.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "psd/store/job.h"
#include "psd/store/variable.h"

TestSuite(slots, .timeout = 80);

enum { ELEMENTS = DT_SLICE_ELEMENTS + 5 };

static const struct declared_place here = {.task = 0, .n_shards = 1, .ranks = 1};

struct house {
    struct dt_pool *pool;
    struct job_shared *shared;
    struct job *job;
};

/* One worker, one shard, one variable of two slices with adam and lr .1; all values 1. */
static struct house
open_house(uint32_t consistency)
{
    static float ones[DT_SLICE_ELEMENTS];
    struct house h = {.pool = dt_pool_create(), .shared = job_shared_create()};
    struct dt_declaration d = {.name = "w", .n_dims = 1, .shape = {ELEMENTS}, .optimizer = "adam"};
    struct dt_job_params params;
    uint32_t i;
    bool first;

    d.n_params = 1;
    d.params[0] = (struct dt_optimizer_param){"lr", .1f};
    dt_job_params_default(&params);
    params.consistency = consistency;
    h.shared->declared = declared_create(&d, 1, &here, NULL);
    h.job = job_create(1, "job", &params, h.shared, h.pool);
    cr_assert(h.job && job_declare(h.job, 0));
    for (i = 0; i < DT_SLICE_ELEMENTS; i++)
        ones[i] = 1;
    for (i = 0; i < 2; i++)
        cr_assert(slice_set(job_find_slice(h.job, 0, i), h.pool, ones, &first) && first);
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

/* Push `gradient` (NULL: abstain) at the slice's version. */
static enum dt_fate
push(struct house *h, struct slice *s, const float *gradient, uint64_t weight)
{
    static uint64_t counter;
    struct push p = {
        .life = 7,
        .counter = ++counter,
        .version = slice_version(s),
        .weight = weight,
        .count = weight > 0,
        .gradient = gradient,
    };
    uint64_t version;
    bool failed;
    enum dt_fate fate = slice_push(s, h->job, &p, 1, &version, &failed);

    cr_assert_not(failed);
    slice_close_round(s, h->job);
    return fate;
}

static float
slot(const struct slice *s, unsigned i, uint32_t k)
{
    return ((const float *)s->slots[i]->data)[k];
}

static void
is_as_at_first(const struct slice *s)
{
    uint32_t k;

    for (k = 0; k < s->n; k++) {
        cr_assert_eq(((const float *)s->values->data)[k], 1);
        cr_assert(slot(s, 0, k) == 0 && slot(s, 1, k) == 0);
    }
    cr_assert_eq(slot(s, 2, 0), .9f);
    cr_assert_eq(slot(s, 3, 0), .999f);
}

Test(slots, each_slice_counts_its_own_updates)
{
    struct house h = open_house(DT_SYNC);
    struct slice *big = job_find_slice(h.job, 0, 0), *small = job_find_slice(h.job, 0, 1);
    const float g[5] = {1, -1, 0, 2, -2};

    is_as_at_first(big);
    is_as_at_first(small);
    cr_assert_eq(push(&h, small, g, 4), DT_FATE_ACCUMULATED);
    cr_assert_eq(slice_version(small), 1);
    cr_expect_float_eq(((const float *)small->values->data)[0], .9, 1e-6);
    cr_expect_float_eq(((const float *)small->values->data)[4], 1.1, 1e-6);
    cr_expect_eq(((const float *)small->values->data)[2], 1);
    cr_expect_float_eq(slot(small, 0, 3), .2, 1e-6);
    cr_expect_float_eq(slot(small, 1, 3), .004, 1e-7);
    cr_expect_eq(slot(small, 2, 0), .9f * .9f);
    cr_expect_eq(slot(small, 3, 0), .999f * .999f);
    is_as_at_first(big);
    close_house(&h);
}

Test(slots, a_round_without_divisor_moves_the_version_alone)
{
    struct house h = open_house(DT_SYNC);
    struct slice *s = job_find_slice(h.job, 0, 1);

    cr_assert_eq(push(&h, s, NULL, 0), DT_FATE_ACCUMULATED);
    cr_assert_eq(slice_version(s), 1);
    is_as_at_first(s);
    close_house(&h);
}

Test(slots, an_asynchronous_abstention_changes_nothing)
{
    struct house h = open_house(DT_ASYNC);
    struct slice *s = job_find_slice(h.job, 0, 1);
    const float g[5] = {1, 1, 1, 1, 1};

    push(&h, s, NULL, 0);
    is_as_at_first(s);
    cr_assert_eq(slice_version(s), 0);
    cr_assert_eq(push(&h, s, g, 1), DT_FATE_APPLIED);
    cr_expect_eq(slot(s, 2, 0), .9f * .9f);
    close_house(&h);
}

/* Values are replaced while a reply still reads them; the slots stay where they are. */
Test(slots, slots_are_carried_when_values_are_shared)
{
    struct house h = open_house(DT_SYNC);
    struct slice *s = job_find_slice(h.job, 0, 1);
    const float g[5] = {1, 1, 1, 1, 1};
    struct dt_block *reply = dt_block_ref(s->values);

    push(&h, s, g, 1);
    push(&h, s, g, 1);
    cr_expect_neq(s->values, reply);
    cr_expect_eq(*(const float *)reply->data, 1);
    cr_expect_float_eq(*(const float *)s->values->data, .8, 1e-5);
    cr_expect_eq(slot(s, 2, 0), .9f * .9f * .9f);
    dt_block_unref(reply);
    close_house(&h);
}

/* The quota counts a beta power as the small block that it is. */
Test(slots, the_charge_counts_values_accumulator_and_slots)
{
    struct dt_declaration d = {.name = "w", .n_dims = 1, .shape = {DT_SLICE_ELEMENTS}};
    uint64_t block = dt_block_charge(DT_SLICE_ELEMENTS * sizeof(float)), sgd;

    d.n_params = 1;
    d.params[0] = (struct dt_optimizer_param){"lr", .1f};
    strcpy(d.optimizer, "sgd");
    sgd = declared_charge(&d, 1, &here);
    strcpy(d.optimizer, "adagrad");
    cr_expect_eq(declared_charge(&d, 1, &here), sgd + block);
    strcpy(d.optimizer, "adam");
    cr_expect_eq(declared_charge(&d, 1, &here), sgd + 2 * block + 2 * dt_block_charge(4));
}
