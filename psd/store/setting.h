/*
 * setting.h - what the operator changed of a live job, beside what was declared: from which step on which value
 * counts. A plain value; the shard's thread.
 */
#ifndef PSD_STORE_SETTING_H
#define PSD_STORE_SETTING_H

#include <stdbool.h>
#include <stdint.h>

#define SETTING_MAX 64 /* changes kept; the oldest goes first */

struct setting_change {
    uint64_t from; /* step */
    double value;
};

struct setting {
    uint32_t n;
    uint32_t room;
    struct setting_change *changes; /* owned; by rising `from` */
};

void setting_deinit(struct setting *s);
/* From step `from` on `value` counts; a change at that very step is replaced. False when memory is short. */
bool setting_add(struct setting *s, uint64_t from, double value);
/* No room for one more: the oldest is in force at `step`, all others are to come. */
bool setting_is_full(const struct setting *s, uint64_t step);
/* The value that counts at `step`; false: what was declared does. */
bool setting_at(const struct setting *s, uint64_t step, double *value);

#endif
