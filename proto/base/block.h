/*
 * block.h - reference-counted aligned buffers for one slice's values or one slot.
 *
 * Blocks come out of 2 MiB slabs (madvise MADV_HUGEPAGE) in size classes of powers of two from 64 B
 * to 1 MiB; freed blocks are recycled through per-class free lists of their pool. A block is
 * immutable while it is shared (refs > 1): update in place only if dt_block_is_exclusive().
 *
 * Thread rule: a pool's dt_block_create() is called by its owning thread alone; dt_block_ref and
 * dt_block_unref may be called by any thread (libzmq's free callback runs on an I/O thread), so the
 * free lists take a lock or are lock-free. A pool may be destroyed before its blocks: the pool's
 * memory then goes with the last block.
 */
#ifndef DT_BASE_BLOCK_H
#define DT_BASE_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_SLICE_ELEMENTS 262144 /* at most, in one slice */
#define DT_SLICE_BYTES (DT_SLICE_ELEMENTS * 4)
#define DT_SLAB_BYTES (2u << 20)

struct dt_pool;

struct dt_block {
    void *data;      /* 64-byte aligned */
    size_t bytes;    /* as asked for */
    size_t capacity; /* the size class */
    atomic_int refs;
    struct dt_pool *pool;       /* borrowed; private */
    struct dt_block *next_free; /* private */
};

struct dt_pool *dt_pool_create(void);             /* NULL when memory is short */
void dt_pool_destroy(struct dt_pool *pool);       /* NULL-safe */
size_t dt_pool_bytes(const struct dt_pool *pool); /* bytes of slabs held; any thread */

/* A block of `bytes` (1..1 MiB), content undefined, one reference. NULL when memory is short. */
struct dt_block *dt_block_create(struct dt_pool *pool, size_t bytes);
struct dt_block *dt_block_ref(struct dt_block *b); /* returns b */
void dt_block_unref(struct dt_block *b);           /* NULL-safe */
/* acquire order: if true, all other holders are done reading. */
bool dt_block_is_exclusive(const struct dt_block *b);
/* Size that is really taken by a block of `bytes`; for quotas. */
size_t dt_block_charge(size_t bytes);

/* Huge-page buffers for callers (dtw_alloc): 2 MiB aligned, zeroed, MADV_HUGEPAGE. NULL when short. */
void *dt_huge_alloc(size_t bytes);
void dt_huge_free(void *p, size_t bytes);
/* Let the whole huge pages within [p, p + bytes) be such, also where they are in use: what is read at random then
 * misses the TLB less. A hint: nothing else changes, and it may fail. */
void dt_huge_advise(void *p, size_t bytes);

#endif
