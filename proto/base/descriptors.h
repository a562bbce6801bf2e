/*
 * descriptors.h - are there file descriptors for what is to be opened? libzmq aborts the process when
 * it runs out of them at some places, so that is asked before.
 */
#ifndef DT_BASE_DESCRIPTORS_H
#define DT_BASE_DESCRIPTORS_H

#include "proto/base/error.h"

/* DT_OK when `n` more can be opened now; else DT_E_UNAVAILABLE and one line: `what` needs n of them, the
 * limit, how to raise it. Any thread. */
enum dt_status dt_descriptors_check(unsigned n, const char *what, struct dt_error *err);
/* Raises this process's soft limit to its hard one, for a program that holds many connections. */
void dt_descriptors_raise(void);

#endif
