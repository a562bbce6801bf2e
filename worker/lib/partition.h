/*
 * partition.h - into how many parts a variable is cut along its first axis, and where: pure functions, so that
 * all workers agree without talking. TensorFlow's partitioners; ALGORITHMS section 5. Private.
 */
#ifndef WORKER_LIB_PARTITION_H
#define WORKER_LIB_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/lib/dtworker.h"

enum partition_kind {
    PARTITION_NONE,
    PARTITION_FIXED,     /* min(n, d) parts */
    PARTITION_AXIS_SIZE, /* parts of at most max_bytes, but at most max_parts */
    PARTITION_MIN_MAX,   /* parts of at least min_bytes, but at most max_parts */
};

struct partition {
    enum partition_kind kind;
    uint64_t max_parts; /* axis-size: 0: any number */
    uint64_t bytes;     /* axis-size: the most of a part; min-max: the least */
};

#define PARTITION_MIN_SLICE 262144u /* min-max without MIN_BYTES */

/* "none", "fixed:N", "axis-size:MAX_BYTES[:MAX_PARTS]", "min-max:MAX_PARTS[:MIN_BYTES]"; NULL is none. DTW_INVALID
 * with a sentence. */
enum dtw_status partition_parse(const char *text, struct partition *out, struct dtw_error *err);
/* Parts of a variable of `elements` float32 in `d` rows (the first dimension); at least 1, at most d. */
uint64_t partition_count(const struct partition *p, uint64_t d, uint64_t elements);

struct partition_run { /* rows of the first axis */
    uint64_t start;
    uint64_t n;
};
/* Part k of `parts`: the first d % parts of them have one row more than the others. */
struct partition_run partition_split(uint64_t d, uint64_t parts, uint64_t k);
/* "NAME/part_K"; false: longer than `size` - 1. */
bool partition_name(const char *name, uint64_t k, char *out, size_t size);

#endif
