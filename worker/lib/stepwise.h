/*
 * stepwise.h - a push and pull whose gradients come one variable at a time. Private; lock held.
 */
#ifndef WORKER_LIB_STEPWISE_H
#define WORKER_LIB_STEPWISE_H

#include <stdbool.h>
#include <stdint.h>

struct dtw_handle;

struct stepwise {
    uint64_t counter; /* of the push: all its messages have it */
    uint64_t weight;
    uint64_t clock;
    unsigned count;
    float **values; /* owned array of the application's buffers */
    bool *given;    /* owned; by variable */
    uint32_t n_left;
    uint32_t *n_unanswered; /* owned; messages, by variable */
    uint32_t n_waiting;     /* threads that wait for a variable */
};

void stepwise_destroy(struct stepwise *s); /* NULL-safe */
/* Gradients are missing: the handle cannot become complete. */
bool stepwise_is_open(const struct dtw_handle *h);
/* A message of the variable, or of none where `whole` is not one, was answered. */
void stepwise_answered(struct dtw_handle *h, uint32_t whole);

#endif
