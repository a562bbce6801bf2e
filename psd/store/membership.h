/*
 * membership.h - which ranks a synchronous step counts: a pure function of the step.
 *
 * A rank is a member of step t when it is registered, first <= t, and it has not left before t. A
 * rank that left with last step L still counts up to L, as one that abstained wherever its push is
 * not in. A rank that is lost is struck from all steps at once.
 *
 * Thread rule: owned by one shard; every shard keeps an equal copy (DESIGN section 5).
 */
#ifndef PSD_STORE_MEMBERSHIP_H
#define PSD_STORE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#define MEMBERSHIP_OPEN UINT64_MAX /* last step of a rank that has not left */

struct member {
    bool counted; /* false: not registered, or struck */
    bool left;
    uint64_t first; /* first step that counts it */
    uint64_t last;  /* last step that counts it; MEMBERSHIP_OPEN until LEAVE */
    bool none;      /* left without any step */
};

struct membership {
    uint32_t n;           /* ranks known: 0..n-1 */
    struct member *ranks; /* owned */
};

/* Ranks 0..workers-1 are members from step 0. False when memory is short. */
bool membership_init(struct membership *m, uint32_t workers);
void membership_deinit(struct membership *m);

/* Count `rank` from step `first` on; it is thereby struck from every earlier step. */
bool membership_join(struct membership *m, uint32_t rank, uint64_t first);
/* The rank's last step; UINT64_MAX: it took no step at all. No effect on a rank
 * that is not counted or has left already: a later life that never joined must not stretch it. */
void membership_leave(struct membership *m, uint32_t rank, uint64_t last);
void membership_strike(struct membership *m, uint32_t rank);

bool membership_counts(const struct membership *m, uint32_t rank, uint64_t step);
/* ssp: counted and has not left. */
bool membership_is_active(const struct membership *m, uint32_t rank);
bool membership_has_left(const struct membership *m, uint32_t rank);
/* The first step after `step` from which a rank is counted; MEMBERSHIP_OPEN: none is awaited. */
uint64_t membership_next_after(const struct membership *m, uint64_t step);

#endif
