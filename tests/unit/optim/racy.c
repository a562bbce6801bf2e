/*
 * racy.c - the racy kernels of locking none: alone they give the bits of the ordinary rules; several
 * threads at once lose updates but never tear an element.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "psd/optim/racy.h"
#include "samples.h"
#include "state.h"

TestSuite(racy, .timeout = 120);

static void
same_bits(const char *rule, const struct optimizer_param *params, size_t n)
{
    float *w = samples(1, n);
    struct state a = state_create(rule, params, w, n), b = state_create(rule, params, w, n);
    unsigned step;

    for (step = 0; step < 4; step++) {
        float *g = samples(step + 2, n);
        void *base;
        const void *moved = unaligned_copy(g, n, step, &base);

        state_apply(&a, g);
        optimizer_apply_racy(&b.optimizer, b.w, b.slots, moved, n, 0);
        state_expect_equal(&a, &b, rule);
        free(base);
        free(g);
    }
    state_destroy(&a);
    state_destroy(&b);
    free(w);
}

Test(racy, a_number_that_is_not_finite_is_found_in_any_place)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[9] = {1, -1, 3e38f, -3e38f, 0, 1e-45f, 2, 3, 4};
    unsigned i, k;

    cr_assert(racy_is_finite(x, 9) && racy_is_finite(x, 0));
    for (i = 0; i < 9; i++) {
        float kept = x[i];

        for (k = 0; k < 3; k++) {
            x[i] = bad[k];
            cr_assert_not(racy_is_finite(x, 9), "%g at %u", (double)bad[k], i);
        }
        x[i] = kept;
    }
}

Test(racy, alone_each_rule_gives_the_bits_of_its_twin)
{
    static const struct optimizer_param lr[] = {{"lr", .1f}, {NULL, 0}}, none[] = {{NULL, 0}};
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        same_bits("sgd", lr, sample_sizes[i]);
        same_bits("momentum", lr, sample_sizes[i]);
        same_bits("nesterov", lr, sample_sizes[i]);
        same_bits("rmsprop", lr, sample_sizes[i]);
        same_bits("ftrl", lr, sample_sizes[i]);
        same_bits("adagrad", lr, sample_sizes[i]);
        same_bits("adam", lr, sample_sizes[i]);
        same_bits("add", none, sample_sizes[i]);
        same_bits("assign", none, sample_sizes[i]);
    }
}

enum { ELEMENTS = 1000, PUSHES = 500, THREADS = 2 };

static float ones[ELEMENTS];

static void *
add_ones(void *w)
{
    unsigned i;

    for (i = 0; i < PUSHES; i++)
        racy_add(w, ones, ELEMENTS);
    return NULL;
}

Test(racy, threads_lose_updates_but_every_element_is_whole)
{
    static float w[ELEMENTS];
    pthread_t threads[THREADS];
    double sum = 0;
    unsigned i;

    for (i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    for (i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, add_ones, w), 0);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < ELEMENTS; i++) {
        cr_assert(w[i] > 0 && w[i] <= THREADS * PUSHES && w[i] == floorf(w[i]), "w[%u] = %g", i,
                  (double)w[i]);
        sum += (double)w[i];
    }
    fprintf(stderr, "lost: %.3f %%\n", 100 - sum / ELEMENTS / PUSHES / THREADS * 100);
}
