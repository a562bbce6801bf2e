/*
 * daemon.h - the life cycle of a psd. Main thread.
 */
#ifndef PSD_DAEMON_DAEMON_H
#define PSD_DAEMON_DAEMON_H

#include "psd/daemon/config.h"

/* Start, serve until a signal, psctl shutdown or --once ends it, stop. Returns the exit code. Signals
 * must have been blocked with signals_block(). argc and argv are read again at SIGHUP. */
int daemon_run(const struct config *config, int argc, char **argv);

#endif
