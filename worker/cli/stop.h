/*
 * stop.h - SIGINT, SIGTERM and SIGHUP ask the program to stop: an eventfd becomes readable and stays so.
 *
 * The first signal asks; the same one once more, 0.3 s later or after that, ends the process at once. Handlers are used, not a
 * signalfd, because OpenBLAS starts threads before main with the signals open. One object a process.
 */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include "proto/base/error.h"

enum dt_status stop_open(struct dt_error *err);
int stop_fd(void);     /* -1 before stop_open */
int stop_signal(void); /* the signal that came first, 0: none */
/* End by the signal that came, with its default action (130, 143 in a shell). Returns 128 + signal if
 * that did not work. */
int stop_raise(void);

#endif
