/*
 * variable.h - a declared tensor on one shard: the slices that have their home here.
 *
 * struct declared is the job's list of declarations with the homes of all slices: made once by shard
 * 0, immutable afterwards, shared by all shards (freed with struct job_shared).
 */
#ifndef PSD_STORE_VARIABLE_H
#define PSD_STORE_VARIABLE_H

#include <stdint.h>

#include "proto/wire/declare.h"
#include "psd/store/slice.h"

struct declared_variable {
    struct dt_declaration decl;
    uint64_t elements;
    uint32_t n_slices; /* 0: another ps task holds it */
    uint8_t *homes;    /* owned; shard of each slice */
};

struct declared {
    uint32_t n;
    uint32_t n_slices;                    /* of this task */
    uint64_t fingerprint;                 /* of all declarations */
    struct declared_variable variables[]; /* variable id = index */
};

/* What `n` declarations of a task are charged to memory_quota, `ranks` push rows a slice. To be checked
 * before declared_create: homes alone may be more than there is memory. */
uint64_t declared_charge(const struct dt_declaration *decls, uint32_t n, uint32_t task,
                         uint32_t ranks);
/* Copy `n` declarations and choose homes on `n_shards` for those of `task`: least bytes, then lowest
 * index. NULL when memory is short. */
struct declared *declared_create(const struct dt_declaration *decls, uint32_t n, uint32_t task,
                                 uint32_t n_shards);
void declared_destroy(struct declared *d);

struct variable {
    const struct declared_variable *declared; /* borrowed */
    struct optimizer optimizer;
    uint32_t n_slices;
    struct slice **slices; /* owned; NULL where the home is another shard */
};

/* The rule of a declaration; DT_R_BAD_VALUE with a sentence that names the variable. */
enum dt_status variable_optimizer(const struct dt_declaration *d, struct optimizer *out,
                                  struct dt_error *err);

/* False when memory is short. */
bool variable_init(struct variable *v, const struct declared_variable *declared, uint32_t shard,
                   struct dt_pool *pool);
void variable_deinit(struct variable *v);

#endif
