/*
 * variable.h - a declared tensor on one shard: the slices that this shard serves, which are those at home
 * here, or with locking none all of them.
 */
#ifndef PSD_STORE_VARIABLE_H
#define PSD_STORE_VARIABLE_H

#include <stdint.h>

#include "psd/store/declared.h"
#include "psd/store/setting.h"
#include "psd/store/slice.h"

struct variable {
    const struct declared_variable *declared; /* borrowed */
    struct optimizer optimizer;
    struct setting lr; /* the operator's, beside what was declared */
    uint32_t n_slices;
    struct slice **slices; /* owned; NULL where the home is another shard */
};

/* False when memory is short. */
bool variable_init(struct variable *v, const struct declared_variable *declared, uint32_t shard,
                   struct dt_pool *pool);
void variable_deinit(struct variable *v);

#endif
