/*
 * accept.h - connections that come while no file descriptor is left are closed at once.
 *
 * libzmq (4.3.4) aborts when a connection to an ipc endpoint cannot be accepted for want of a descriptor,
 * and turns for ever at full speed when it is one to a tcp endpoint. psd therefore has an accept4() of its
 * own, which libzmq calls: with a descriptor kept in reserve it takes such a connection and closes it.
 * The peer tries again later, as with a psd that is not there yet.
 */
#ifndef PSD_DAEMON_ACCEPT_H
#define PSD_DAEMON_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

/* Set the reserve aside; before the first bind, and again when descriptors are to be had. False: none is left. */
bool accept_reserve(void);
void accept_release(void);

/* Connections turned away so far. Any thread. */
uint64_t accept_turned_away(void);

#endif
