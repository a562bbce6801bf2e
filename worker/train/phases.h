/*
 * phases.h - where a worker's time goes: it is in one phase at any moment, so the shares add up to 1.
 *
 * An exchange is divided by what its thread did: at work (checks gradients, packs, sends, receives) it counts as
 * push, asleep as wait. Two readings of a clock a change of phase, so it is always on. One thread; a pure part.
 */
#ifndef TRAIN_PHASES_H
#define TRAIN_PHASES_H

#include <stdbool.h>

enum phase {
    PHASE_OTHER,   /* local updates, accuracy at epoch ends, reports */
    PHASE_COMPUTE, /* gradients: rows gathered, network, --step-delay */
    PHASE_PUSH,    /* exchanges: at work; never entered */
    PHASE_WAIT,    /* exchanges: entered for the whole of one; asleep */
    N_PHASES,
};

struct phases {
    double seconds[N_PHASES]; /* until the last change */
    enum phase now;
    double since;     /* of `now` */
    double cpu_since; /* the thread's own time then; in PHASE_WAIT only */
};

void phases_start(struct phases *p); /* from zero, in PHASE_OTHER */
/* Returns the phase that ends, so that a part of another can go back to it. */
enum phase phases_enter(struct phases *p, enum phase next);

/* The share of each phase in their sum. False, and all NAN, where nothing was measured. */
bool phases_shares(const double seconds[N_PHASES], double shares[N_PHASES]);
const char *phase_name(enum phase phase); /* "compute", ... */

#endif
