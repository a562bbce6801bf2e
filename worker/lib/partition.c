/*
 * partition.c - fixed, axis-size and min-max, and how d rows are split. No I/O, no lock.
 */
#include "worker/lib/partition.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"
#include "proto/wire/limits.h"
#include "worker/lib/client.h"

#define HOW_BYTES 64

/* The words between the colons of "kind:a:b"; at most 3. 0: too many, or too long. */
static unsigned
split_words(const char *text, char *copy, char *words[3])
{
    unsigned n = 0;
    char *rest = copy;

    if (strlen(text) >= HOW_BYTES)
        return 0;
    snprintf(copy, HOW_BYTES, "%s", text);
    while (rest) {
        if (n == 3)
            return 0;
        words[n++] = strsep(&rest, ":");
    }
    return n;
}

static bool
read_parts(const char *text, uint64_t *parts)
{
    return dt_parse_u64(text, parts) && *parts >= 1 && *parts <= DT_MAX_VARIABLES;
}

static bool
read_bytes(const char *text, uint64_t *bytes)
{
    return dt_parse_bytes(text, bytes) && *bytes >= 1;
}

static bool
read_words(char *const words[3], unsigned n, struct partition *p)
{
    if (n == 1 && !strcmp(words[0], "none")) {
        p->kind = PARTITION_NONE;
        return true;
    }
    if (n == 2 && !strcmp(words[0], "fixed")) {
        p->kind = PARTITION_FIXED;
        return read_parts(words[1], &p->max_parts);
    }
    if (n >= 2 && !strcmp(words[0], "axis-size")) {
        p->kind = PARTITION_AXIS_SIZE;
        return read_bytes(words[1], &p->bytes) && (n == 2 || read_parts(words[2], &p->max_parts));
    }
    if (n >= 2 && !strcmp(words[0], "min-max")) {
        p->kind = PARTITION_MIN_MAX;
        p->bytes = PARTITION_MIN_SLICE;
        return read_parts(words[1], &p->max_parts) && (n == 2 || read_bytes(words[2], &p->bytes));
    }
    return false;
}

enum dtw_status
partition_parse(const char *text, struct partition *out, struct dtw_error *err)
{
    char copy[HOW_BYTES];
    char *words[3] = {NULL, NULL, NULL};
    struct partition p = {PARTITION_NONE, 0, 0};

    if (text && !read_words(words, split_words(text, copy, words), &p))
        return client_error(err, DTW_INVALID,
                            "partition '%.64s': use none, fixed:N, axis-size:MAX_BYTES[:MAX_PARTS] "
                            "or min-max:MAX_PARTS[:MIN_BYTES]; 1 to %d parts, 1 byte or more",
                            text, DT_MAX_VARIABLES);
    *out = p;
    return DTW_OK;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b > 0);
}

uint64_t
partition_count(const struct partition *p, uint64_t d, uint64_t elements)
{
    uint64_t row_bytes = elements / d * sizeof(float), per, parts;

    switch (p->kind) {
    case PARTITION_FIXED:
        return least(p->max_parts, d);
    case PARTITION_AXIS_SIZE:
        per = p->bytes / row_bytes > 0 ? p->bytes / row_bytes : 1;
        parts = divide_up(d, per);
        return p->max_parts > 0 ? least(parts, p->max_parts) : parts;
    case PARTITION_MIN_MAX:
        parts = divide_up(elements * sizeof(float), p->bytes);
        return least(least(d, p->max_parts), parts);
    case PARTITION_NONE:
        break;
    }
    return 1;
}

struct partition_run
partition_split(uint64_t d, uint64_t parts, uint64_t k)
{
    uint64_t base = d / parts, extra = d % parts;
    struct partition_run run = {k * base + least(k, extra), base + (k < extra)};

    return run;
}

bool
partition_name(const char *name, uint64_t k, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/part_%llu", name, (unsigned long long)k);

    return n > 0 && (size_t)n < size;
}
