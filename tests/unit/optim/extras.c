/*
 * extras.c - clip by value and weight decay before every rule: against double precision, with and without
 * locking, and what is refused.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "psd/optim/kernels.h"
#include "psd/optim/racy.h"
#include "samples.h"
#include "state.h"

TestSuite(extras, .timeout = 240);

#define LR                                                                                         \
    {                                                                                              \
        "lr", .1f                                                                                  \
    }
#define CLIP                                                                                       \
    {                                                                                              \
        "clip_value", .25f                                                                         \
    }
#define DECAY                                                                                      \
    {                                                                                              \
        "weight_decay", .125f                                                                      \
    }

static const char *const rules[] = {"sgd",  "momentum", "nesterov",         "adagrad",
                                    "adam", "rmsprop",  "rmsprop-centered", "ftrl"};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

/* What the extras make of g, as one writes it on paper. */
static float *
changed(const float *w, const float *g, size_t n, const struct extras *e)
{
    float *out = malloc((n + 1) * sizeof(*out));
    size_t i;

    for (i = 0; i < n; i++) {
        volatile float decay = e->weight_decay * w[i];

        out[i] = g[i];
        if (e->clip_value > 0)
            out[i] = fmaxf(fminf(g[i], e->clip_value), -e->clip_value);
        if (e->weight_decay > 0)
            out[i] += decay;
    }
    return out;
}

/* Three updates with extras are three of the bare rule by the changed gradients, bit for bit; `racy` too. */
static void
same_as_changed(const char *rule, const struct optimizer_param *extras, size_t n)
{
    const struct optimizer_param bare[] = {LR, {NULL, 0}};
    float *w = samples(1, n);
    struct state a = state_create(rule, extras, w, n), b = state_create(rule, bare, w, n),
                 racy = state_create(rule, extras, w, n);
    unsigned step;

    for (step = 0; step < 3; step++) {
        float *g = samples(step + 2, n), *g2 = changed(b.w, g, n, &a.optimizer.extras);
        void *base;
        const void *moved = unaligned_copy(g, n, step + 1, &base);

        state_apply(&a, moved);
        state_apply(&b, g2);
        state_expect_equal(&a, &b, rule);
        if (optimizer_can_race(rule)) {
            optimizer_apply_racy(&racy.optimizer, racy.w, racy.slots, moved, n, step);
            state_expect_equal(&racy, &b, rule);
        }
        free(base);
        free(g);
        free(g2);
    }
    state_destroy(&a);
    state_destroy(&b);
    state_destroy(&racy);
    free(w);
}

Test(extras, every_rule_takes_the_changed_gradient)
{
    const struct optimizer_param clip[] = {LR, CLIP, {NULL, 0}}, decay[] = {LR, DECAY, {NULL, 0}},
                                 both[] = {DECAY, LR, CLIP, {NULL, 0}};
    static const size_t sizes[] = {0, 1, 7, 8, 9, 2047, 2048, 2049, 5000};
    size_t i, k;

    for (i = 0; i < N_RULES; i++) {
        for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            same_as_changed(rules[i], clip, sizes[k]);
            same_as_changed(rules[i], decay, sizes[k]);
            same_as_changed(rules[i], both, sizes[k]);
        }
        same_as_changed(rules[i], both, 262143);
        same_as_changed(rules[i], both, 262145);
    }
}

/* Clip first, then decay: against double precision. */
Test(extras, one_step_of_sgd_in_double)
{
    const struct optimizer_param both[] = {LR, CLIP, DECAY, {NULL, 0}};
    size_t i, k;

    for (k = 0; k < N_SIZES; k++) {
        size_t n = sample_sizes[k];
        float *w = samples(1, n), *g = samples(2, n);
        struct state s = state_create("sgd", both, w, n);

        state_apply(&s, g);
        for (i = 0; i < n; i++) {
            double x = fmin(fmax((double)g[i], -.25), .25) + .125 * (double)w[i];
            double want = (double)w[i] - (double).1f * x;

            cr_assert_leq(fabs((double)s.w[i] - want),
                          1e-6 * fmax(fabs((double)w[i]), fabs((double).1f * x)));
        }
        state_destroy(&s);
        free(w);
        free(g);
    }
}

Test(extras, a_clip_that_is_not_reached_changes_no_bit)
{
    const float w[3] = {1, -2, .5f}, g[3] = {.1f, -.2f, -0.0f};
    const struct optimizer_param clip[] = {LR, CLIP, {NULL, 0}}, bare[] = {LR, {NULL, 0}};
    struct state a = state_create("adam", clip, w, 3), b = state_create("adam", bare, w, 3);

    state_apply(&a, g);
    state_apply(&b, g);
    state_expect_equal(&a, &b, "adam");
    state_destroy(&a);
    state_destroy(&b);
}

static void
refused(const char *text, const char *rule, const struct optimizer_param *params, unsigned n)
{
    struct optimizer o;
    struct dt_error err = {DT_OK, ""};

    cr_expect_eq(optimizer_init(&o, rule, params, n, &err), DT_R_BAD_VALUE, "%s", text);
    cr_expect_str_eq(err.text, text);
}

#define REFUSED(text, rule, ...)                                                                   \
    refused(text, rule, (const struct optimizer_param[]){__VA_ARGS__},                             \
            sizeof((const struct optimizer_param[]){__VA_ARGS__}) /                                \
                sizeof(struct optimizer_param))

Test(extras, refusals)
{
    REFUSED("sgd: clip_value is 0, must be finite and above 0 (leave it out for none)", "sgd", LR,
            {"clip_value", 0});
    REFUSED("adam: clip_value is -1, must be finite and above 0 (leave it out for none)", "adam",
            {"clip_value", -1}, LR);
    REFUSED("sgd: weight_decay is inf, must be finite and above 0 (leave it out for none)", "sgd",
            LR, {"weight_decay", INFINITY});
    REFUSED("sgd: weight_decay is nan, must be finite and above 0 (leave it out for none)", "sgd",
            LR, {"weight_decay", NAN});
    REFUSED("sgd: weight_decay is given twice", "sgd", LR, DECAY, DECAY);
    REFUSED("add: takes what is pushed as it is, with neither rate nor gradient: it has no "
            "weight_decay",
            "add", DECAY);
    REFUSED("assign: takes what is pushed as it is, with neither rate nor gradient: it has no "
            "clip_value",
            "assign", CLIP);
    REFUSED("add: takes what is pushed as it is, with neither rate nor gradient: it has no warmup",
            "add", {"warmup", 10});
    REFUSED("sgd: has no parameter 'clip_norm'", "sgd", LR, {"clip_norm", 1});
}
