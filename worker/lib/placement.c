/*
 * placement.c - greedy, round robin, pinned. No I/O; lock held.
 */
#include "worker/lib/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
placement_init(struct placement *p, uint32_t n_tasks)
{
    p->n_tasks = n_tasks;
    p->bytes = calloc(n_tasks, sizeof(*p->bytes));
    return p->bytes != NULL;
}

void
placement_deinit(struct placement *p)
{
    struct pin *pin, *next;

    for (pin = p->pins; pin; pin = next) {
        next = pin->next;
        free(pin);
    }
    free(p->bytes);
}

static struct pin *
find_pin(const struct placement *p, const char *name)
{
    struct pin *pin;

    for (pin = p->pins; pin; pin = pin->next) {
        if (!strcmp(pin->name, name))
            return pin;
    }
    return NULL;
}

bool
placement_pin(struct placement *p, const char *name, uint32_t task)
{
    struct pin *pin = find_pin(p, name);

    if (!pin) {
        pin = calloc(1, sizeof(*pin));
        if (!pin)
            return false;
        snprintf(pin->name, sizeof(pin->name), "%s", name);
        pin->next = p->pins;
        p->pins = pin;
    }
    pin->task = task;
    return true;
}

static uint32_t
least_loaded(const struct placement *p)
{
    uint32_t i, best = 0;

    for (i = 1; i < p->n_tasks; i++) {
        if (p->bytes[i] < p->bytes[best])
            best = i;
    }
    return best;
}

static uint32_t
choose_free(struct placement *p)
{
    uint32_t task;

    if (p->policy == PLACEMENT_GREEDY)
        return least_loaded(p);
    task = p->next;
    p->next = (p->next + 1) % p->n_tasks;
    return task;
}

uint32_t
placement_choose(struct placement *p, const char *name, const char *whole, uint64_t bytes)
{
    struct pin *pin = find_pin(p, name), *of_whole = find_pin(p, whole);
    uint32_t task;

    if (pin)
        pin->used = true;
    if (of_whole)
        of_whole->used = true;
    pin = pin ? pin : of_whole;
    task = pin ? pin->task : choose_free(p);
    p->bytes[task] += bytes;
    return task;
}

const char *
placement_unused_pin(const struct placement *p)
{
    const struct pin *pin;

    for (pin = p->pins; pin; pin = pin->next) {
        if (!pin->used)
            return pin->name;
    }
    return NULL;
}
