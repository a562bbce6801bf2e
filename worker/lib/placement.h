/*
 * placement.h - which ps task holds a variable: a pure function of the declarations so far, so that all
 * workers agree without talking. ALGORITHMS section 5. Private; lock held.
 */
#ifndef WORKER_LIB_PLACEMENT_H
#define WORKER_LIB_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire/limits.h"

enum placement_policy {
    PLACEMENT_GREEDY,      /* the fewest bytes so far; the lowest index on ties */
    PLACEMENT_ROUND_ROBIN, /* one task after the other in order of declaration */
};

struct pin {
    struct pin *next;
    char name[DT_MAX_NAME + 1];
    uint32_t task;
    bool used;
};

struct placement {
    enum placement_policy policy;
    uint32_t n_tasks;
    uint64_t *bytes;  /* owned: placed so far, one a ps task; pinned ones too */
    uint32_t next;    /* round robin; a pinned variable does not move it */
    struct pin *pins; /* list, owned */
};

bool placement_init(struct placement *p, uint32_t n_tasks); /* false: short of memory */
void placement_deinit(struct placement *p);
/* The variable `name` goes to `task`, whatever the policy says; the last call of a name counts. False: short
 * of memory. */
bool placement_pin(struct placement *p, const char *name, uint32_t task);
/* Choose the task of the next variable. A part of a variable goes where it is pinned, else where the whole
 * one is: `whole` is its name (that of the variable itself when it has no parts). */
uint32_t placement_choose(struct placement *p, const char *name, const char *whole, uint64_t bytes);
/* The name of a pin that no variable had; NULL: none. */
const char *placement_unused_pin(const struct placement *p);

#endif
