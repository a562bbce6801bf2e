/*
 * block.c - size classes, alignment, recycling, references over threads, a pool's end.
 */
#include "proto/base/allocation.h"
#include "proto/base/block.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

TestSuite(block, .timeout = 240);

#define MIB ((size_t)1 << 20)

Test(block, charge_is_the_size_class)
{
    cr_assert_eq(dt_block_charge(1), 64);
    cr_assert_eq(dt_block_charge(64), 64);
    cr_assert_eq(dt_block_charge(65), 128);
    cr_assert_eq(dt_block_charge(4096), 4096);
    cr_assert_eq(dt_block_charge(4097), 8192);
    cr_assert_eq(dt_block_charge(MIB - 1), MIB);
    cr_assert_eq(dt_block_charge(MIB), MIB);
}

Test(block, fields_and_alignment)
{
    static const size_t sizes[] = {1, 63, 64, 65, 1000, 4096, 40000, 262144, 1048572, 1048576};
    struct dt_pool *pool = dt_pool_create();
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct dt_block *b = dt_block_create(pool, sizes[i]);

        cr_assert_not_null(b);
        cr_assert_eq(b->bytes, sizes[i]);
        cr_assert_eq(b->capacity, dt_block_charge(sizes[i]));
        cr_assert_eq((uintptr_t)b->data % 64, 0);
        cr_assert(dt_block_is_exclusive(b));
        memset(b->data, 0xab, sizes[i]);
        dt_block_unref(b);
    }
    dt_pool_destroy(pool);
}

Test(block, illegal_sizes_give_null)
{
    struct dt_pool *pool = dt_pool_create();

    cr_assert_null(dt_block_create(pool, 0));
    cr_assert_null(dt_block_create(pool, MIB + 1));
    cr_assert_null(dt_block_create(pool, SIZE_MAX));
    cr_assert_eq(dt_pool_bytes(pool), 0);
    dt_pool_destroy(pool);
}

Test(block, blocks_do_not_overlap)
{
    enum { N = 200 };
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *blocks[N];
    size_t i, k;

    for (i = 0; i < N; i++) {
        blocks[i] = dt_block_create(pool, 100 + 37 * i);
        memset(blocks[i]->data, (int)i, blocks[i]->bytes);
    }
    for (i = 0; i < N; i++) {
        for (k = 0; k < blocks[i]->bytes; k++)
            cr_assert_eq(((unsigned char *)blocks[i]->data)[k], (unsigned char)i);
        dt_block_unref(blocks[i]);
    }
    dt_pool_destroy(pool);
}

Test(block, freed_blocks_are_recycled)
{
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *a = dt_block_create(pool, MIB), *b = dt_block_create(pool, MIB), *c;
    void *data = a->data;
    int i;

    cr_assert_eq(dt_pool_bytes(pool), DT_SLAB_BYTES);
    dt_block_unref(a);
    for (i = 0; i < 1000; i++) {
        c = dt_block_create(pool, MIB - 8);
        cr_assert_eq(c->data, data);
        cr_assert_eq(c->bytes, MIB - 8);
        dt_block_unref(c);
    }
    cr_assert_eq(dt_pool_bytes(pool), DT_SLAB_BYTES);
    a = dt_block_create(pool, MIB);
    c = dt_block_create(pool, MIB);
    cr_assert_eq(dt_pool_bytes(pool), 2 * (size_t)DT_SLAB_BYTES);
    dt_block_unref(a);
    dt_block_unref(b);
    dt_block_unref(c);
    dt_pool_destroy(pool);
}

Test(block, exclusive_while_one_reference)
{
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *b = dt_block_create(pool, 100);

    cr_assert_eq(dt_block_ref(b), b);
    cr_assert_not(dt_block_is_exclusive(b));
    dt_block_unref(b);
    cr_assert(dt_block_is_exclusive(b));
    dt_block_unref(b);
    dt_block_unref(NULL);
    dt_pool_destroy(pool);
    dt_pool_destroy(NULL);
}

Test(block, pool_outlives_destroy_until_its_last_block)
{
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *a = dt_block_create(pool, 5000), *b = dt_block_create(pool, MIB);

    dt_pool_destroy(pool);
    memset(a->data, 1, 5000);
    memset(b->data, 2, MIB);
    dt_block_unref(a);
    cr_assert_eq(((unsigned char *)b->data)[MIB - 1], 2);
    dt_block_unref(b); /* LeakSanitizer and valgrind see it if the pool stayed */
}

#if defined(__SANITIZE_ADDRESS__)
Test(block, freed_memory_is_poisoned)
{
    struct dt_pool *pool = dt_pool_create();
    struct dt_block *b = dt_block_create(pool, 100);
    char *data = b->data;

    cr_assert_not(__asan_address_is_poisoned(data));
    cr_assert_not(__asan_address_is_poisoned(data + 99));
    cr_assert(__asan_address_is_poisoned(data + 100));
    dt_block_unref(b);
    cr_assert(__asan_address_is_poisoned(data));
    cr_assert(__asan_address_is_poisoned(data + 99));
    b = dt_block_create(pool, 128);
    cr_assert_eq(b->data, data);
    cr_assert_not(__asan_address_is_poisoned(data + 127));
    dt_block_unref(b);
    dt_pool_destroy(pool);
}
#endif

/* An I/O thread's part: drops references that the owner hands over, in a ring of one slot. */
struct hand_over {
    _Atomic(struct dt_block *) slot;
    atomic_bool done;
    atomic_ulong wrong;
};

static void *
drop_all(void *arg)
{
    struct hand_over *h = arg;

    for (;;) {
        bool done = atomic_load(&h->done);
        struct dt_block *b = atomic_exchange(&h->slot, NULL);
        size_t i;

        if (!b && done)
            return NULL;
        if (!b) {
            sched_yield();
            continue;
        }
        for (i = 1; i < b->bytes; i++) {
            if (((unsigned char *)b->data)[i] != ((unsigned char *)b->data)[0])
                atomic_fetch_add(&h->wrong, 1);
        }
        dt_block_unref(b);
    }
}

static void
hand_blocks_over(struct dt_pool *pool, struct hand_over *h, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        struct dt_block *b = dt_block_create(pool, 64 + i % 1000), *none = NULL;

        memset(b->data, (int)i, b->bytes);
        dt_block_ref(b);
        while (!atomic_compare_exchange_weak(&h->slot, &none, b)) {
            none = NULL;
            sched_yield();
        }
        dt_block_unref(b);
    }
}

Test(block, last_reference_may_end_in_another_thread)
{
    enum { N_THREADS = 3 };
    struct dt_pool *pool = dt_pool_create();
    struct hand_over h[N_THREADS] = {{.wrong = 0}};
    pthread_t threads[N_THREADS];
    unsigned i;

    for (i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, drop_all, &h[i]), 0);
    for (i = 0; i < 30; i++)
        hand_blocks_over(pool, &h[i % N_THREADS], 200);
    dt_pool_destroy(pool); /* some blocks may still be out */
    for (i = 0; i < N_THREADS; i++)
        atomic_store(&h[i].done, true);
    for (i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(h[i].wrong, 0);
    }
}

Test(block, huge_buffers_are_aligned_and_zeroed)
{
    static const size_t sizes[] = {1, 4096, DT_SLAB_BYTES, DT_SLAB_BYTES + 1};
    size_t i, k;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *p = dt_huge_alloc(sizes[i]);

        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % DT_SLAB_BYTES, 0);
        for (k = 0; k < sizes[i]; k++)
            cr_assert_eq(p[k], 0);
        memset(p, 1, sizes[i]);
        dt_huge_free(p, sizes[i]);
    }
    cr_assert_null(dt_huge_alloc(0));
    cr_assert_null(dt_huge_alloc(SIZE_MAX));
    cr_assert_null(dt_huge_alloc(SIZE_MAX / 2));
    dt_huge_free(NULL, 0);
}

/* A hint: nothing that is there changes, whatever the borders are. */
Test(block, huge_pages_by_advice_keep_what_is_there)
{
    size_t n = 7 * MIB + 12345;
    unsigned char *p = malloc(n);

    cr_assert_not_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(i % 251);
    dt_huge_advise(NULL, n);
    dt_huge_advise(p, 0);
    dt_huge_advise(p, 100);
    dt_huge_advise(p + 1, n - 1);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(p[i], (unsigned char)(i % 251), "byte %zu", i);
    free(p);
}

#if !defined(__SANITIZE_ADDRESS__) /* its own malloc takes no settings */
/* A refused setting would leave the others to make things worse: glibc no longer adapts by itself. */
Test(block, allocation_is_kept_for_frames)
{
    cr_assert(dt_allocation_keep());
}
#endif
