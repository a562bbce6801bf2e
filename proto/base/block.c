/*
 * block.c - blocks out of 2 MiB slabs. A pool's lists are guarded by one mutex: creation is the
 * owner's, but the last reference may be dropped by an I/O thread.
 *
 * Invariants: a block's memory belongs to a slab of its pool for ever; free blocks hang on the list
 * of their class; the pool's memory goes when it was destroyed and its last block came back.
 */
#include "proto/base/block.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1; EINVAL before */
#endif

#define MIN_SHIFT 6  /* 64 B */
#define MAX_SHIFT 20 /* 1 MiB */
#define N_CLASSES (MAX_SHIFT - MIN_SHIFT + 1)

struct slab {
    struct slab *next;
    void *memory;             /* owned; DT_SLAB_BYTES */
    struct dt_block blocks[]; /* headers, apart from the data */
};

struct dt_pool {
    pthread_mutex_t lock;
    struct slab *slabs; /* owned */
    struct dt_block *free[N_CLASSES];
    size_t n_used;
    bool destroyed;
    _Atomic size_t bytes;
};

static unsigned
class_of(size_t bytes)
{
    unsigned c = 0;

    while (((size_t)1 << (c + MIN_SHIFT)) < bytes)
        c++;
    return c;
}

size_t
dt_block_charge(size_t bytes)
{
    return (size_t)1 << (class_of(bytes) + MIN_SHIFT);
}

void *
dt_huge_alloc(size_t bytes)
{
    size_t want = (bytes + DT_SLAB_BYTES - 1) & ~(size_t)(DT_SLAB_BYTES - 1);
    size_t head;
    char *p;

    if (bytes == 0 || want < bytes || want > SIZE_MAX / 2)
        return NULL;
    p = mmap(NULL, want + DT_SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0);
    if (p == MAP_FAILED)
        return NULL;
    head = (size_t) - (intptr_t)p & (DT_SLAB_BYTES - 1);
    if (head)
        munmap(p, head);
    if (DT_SLAB_BYTES - head)
        munmap(p + head + want, DT_SLAB_BYTES - head);
    madvise(p + head, want, MADV_HUGEPAGE);
    return p + head;
}

void
dt_huge_free(void *p, size_t bytes)
{
    if (p)
        munmap(p, (bytes + DT_SLAB_BYTES - 1) & ~(size_t)(DT_SLAB_BYTES - 1));
}

void
dt_huge_advise(void *p, size_t bytes)
{
    size_t head = (size_t) - (intptr_t)p & (DT_SLAB_BYTES - 1);

    if (!p || bytes < head + DT_SLAB_BYTES)
        return;
    bytes = (bytes - head) & ~(size_t)(DT_SLAB_BYTES - 1);
    madvise((char *)p + head, bytes, MADV_HUGEPAGE);
    madvise((char *)p + head, bytes, MADV_COLLAPSE);
}

struct dt_pool *
dt_pool_create(void)
{
    struct dt_pool *pool = calloc(1, sizeof(*pool));

    if (pool)
        pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

static void
pool_free(struct dt_pool *pool)
{
    while (pool->slabs) {
        struct slab *slab = pool->slabs;

        pool->slabs = slab->next;
        ASAN_UNPOISON_MEMORY_REGION(slab->memory, DT_SLAB_BYTES);
        dt_huge_free(slab->memory, DT_SLAB_BYTES);
        free(slab);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void
dt_pool_destroy(struct dt_pool *pool)
{
    bool last;

    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->destroyed = true;
    last = pool->n_used == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        pool_free(pool);
}

size_t
dt_pool_bytes(const struct dt_pool *pool)
{
    return atomic_load_explicit(&pool->bytes, memory_order_relaxed);
}

/* Cut a fresh slab into blocks of class c. Called with the lock held. */
static bool
add_slab(struct dt_pool *pool, unsigned c)
{
    size_t size = (size_t)1 << (c + MIN_SHIFT), n = DT_SLAB_BYTES / size, i;
    struct slab *slab = calloc(1, sizeof(*slab) + n * sizeof(slab->blocks[0]));

    if (!slab)
        return false;
    slab->memory = dt_huge_alloc(DT_SLAB_BYTES);
    if (!slab->memory) {
        free(slab);
        return false;
    }
    for (i = n; i-- > 0;) {
        struct dt_block *b = &slab->blocks[i];

        b->data = (char *)slab->memory + i * size;
        b->capacity = size;
        b->pool = pool;
        b->next_free = pool->free[c];
        pool->free[c] = b;
    }
    ASAN_POISON_MEMORY_REGION(slab->memory, DT_SLAB_BYTES);
    slab->next = pool->slabs;
    pool->slabs = slab;
    atomic_fetch_add_explicit(&pool->bytes, DT_SLAB_BYTES, memory_order_relaxed);
    return true;
}

struct dt_block *
dt_block_create(struct dt_pool *pool, size_t bytes)
{
    struct dt_block *b = NULL;
    unsigned c;

    if (bytes == 0 || bytes > (size_t)1 << MAX_SHIFT)
        return NULL;
    c = class_of(bytes);
    pthread_mutex_lock(&pool->lock);
    if (pool->free[c] || add_slab(pool, c)) {
        b = pool->free[c];
        pool->free[c] = b->next_free;
        pool->n_used++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!b)
        return NULL;
    b->bytes = bytes;
    ASAN_UNPOISON_MEMORY_REGION(b->data, bytes);
    atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

struct dt_block *
dt_block_ref(struct dt_block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void
dt_block_unref(struct dt_block *b)
{
    struct dt_pool *pool;
    unsigned c;
    bool last;

    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    pool = b->pool;
    c = class_of(b->capacity);
    ASAN_POISON_MEMORY_REGION(b->data, b->capacity);
    pthread_mutex_lock(&pool->lock);
    b->next_free = pool->free[c];
    pool->free[c] = b;
    pool->n_used--;
    last = pool->destroyed && pool->n_used == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        pool_free(pool);
}

bool
dt_block_is_exclusive(const struct dt_block *b)
{
    return atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}
