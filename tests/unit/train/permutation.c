/*
 * permutation.c - the shuffles are bijections, differ by key, and never change between versions.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "worker/train/permutation.h"

TestSuite(permutation, .timeout = 120);
TestSuite(philox, .timeout = 120);

static void
expect_bijection(uint64_t n, uint64_t seed, uint64_t epoch)
{
    struct permutation p;
    unsigned char *seen = calloc(n, 1);

    permutation_init(&p, n, seed, PHILOX_ORDER, 0, epoch);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = permutation_at(&p, i);
        cr_assert_lt(at, n);
        cr_assert_eq(seen[at], 0, "n %lu: %lu twice", n, at);
        seen[at] = 1;
    }
    free(seen);
}

Test(permutation, is_a_bijection)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 64, 65, 1001, 4096, 4097, 60000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t epoch = 0; epoch < 3; epoch++)
            expect_bijection(sizes[i], 42, epoch);
    }
}

static unsigned
same_places(const struct permutation *a, const struct permutation *b)
{
    unsigned n = 0;

    for (uint64_t i = 0; i < a->n; i++)
        n += permutation_at(a, i) == permutation_at(b, i);
    return n;
}

Test(permutation, differs_by_seed_epoch_stream_and_domain)
{
    struct permutation a;
    struct permutation b;

    /* two independent shuffles share one place on average; 12 has a chance below 1e-9 */
    permutation_init(&a, 1001, 1, PHILOX_ORDER, 0, 0);
    permutation_init(&b, 1001, 2, PHILOX_ORDER, 0, 0);
    cr_expect_lt(same_places(&a, &b), 12);
    permutation_init(&b, 1001, 1, PHILOX_ORDER, 0, 1);
    cr_expect_lt(same_places(&a, &b), 12);
    permutation_init(&b, 1001, 1, PHILOX_ORDER, 1, 0);
    cr_expect_lt(same_places(&a, &b), 12);
    permutation_init(&b, 1001, 1, PHILOX_LATE_ORDER, 0, 0);
    cr_expect_lt(same_places(&a, &b), 12);
    permutation_init(&b, 1001, 1, PHILOX_ORDER, 0, 0);
    cr_expect_eq(same_places(&a, &b), 1001);
}

Test(permutation, mixes_evenly)
{
    /* 1 000 shuffles of 10: each of the 100 (place, value) pairs is expected 100 times; chi-square
     * with 81 degrees of freedom stays below 140 with probability 0.9999. The seed is fixed. */
    unsigned counts[10][10] = {{0}};
    double chi = 0;
    struct permutation p;

    for (uint64_t epoch = 0; epoch < 1000; epoch++) {
        permutation_init(&p, 10, 7, PHILOX_ORDER, 0, epoch);
        for (uint64_t i = 0; i < 10; i++)
            counts[i][permutation_at(&p, i)]++;
    }
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned j = 0; j < 10; j++)
            chi += (counts[i][j] - 100.0) * (counts[i][j] - 100.0) / 100.0;
    }
    cr_expect_lt(chi, 140.0, "chi-square %f", chi);
}

Test(permutation, handles_the_largest_size)
{
    struct permutation p;
    uint64_t n = UINT64_C(1) << 40;

    permutation_init(&p, n, 3, PHILOX_ORDER, 0, 9);
    cr_expect_lt(permutation_at(&p, 0), n);
    cr_expect_lt(permutation_at(&p, n - 1), n);
    cr_expect_neq(permutation_at(&p, 0), permutation_at(&p, n - 1));
    permutation_init(&p, n - 12345, 3, PHILOX_ORDER, 0, 9);
    cr_expect_lt(permutation_at(&p, n - 12346), n - 12345);
}

/* Random123's own known-answer vectors for philox4x32-10 (kat_vectors). */
Test(philox, known_answers)
{
    struct philox_block b =
        philox(UINT64_C(0x299f31d0a4093822), 3, 0x707344, 0x13198a2e, UINT64_C(0x85a308d3243f6a88));

    cr_expect_eq(b.v[0], 0xd16cfe09u);
    cr_expect_eq(b.v[1], 0x94fdccebu);
    cr_expect_eq(b.v[2], 0x5001e420u);
    cr_expect_eq(b.v[3], 0x24126ea1u);
}

static void
expect_images(uint64_t n, uint64_t epoch, const uint64_t *images, unsigned n_images)
{
    struct permutation p;

    permutation_init(&p, n, 42, PHILOX_ORDER, 0, epoch);
    for (uint64_t i = 0; i < n_images; i++)
        cr_expect_eq(permutation_at(&p, i), images[i], "n %lu epoch %lu place %lu", n, epoch, i);
}

Test(permutation, golden)
{
    /* If this fails, jobs of older versions cannot be resumed on the same rows: do not adapt the numbers. */
    static const uint64_t big[] = {30326, 58508, 32442, 45004, 48706, 4230};
    static const uint64_t next_epoch[] = {34484, 24287, 5334, 50099, 12268, 4256};
    static const uint64_t seven[] = {3, 6, 1, 5, 0, 2, 4};
    static const uint64_t huge[] = {UINT64_C(1063568337224), UINT64_C(450727201268),
                                    UINT64_C(30980870788)};

    expect_images(60000, 0, big, 6);
    expect_images(60000, 1, next_epoch, 6);
    expect_images(7, 0, seven, 7);
    expect_images(UINT64_C(1) << 40, 0, huge, 3);
}
