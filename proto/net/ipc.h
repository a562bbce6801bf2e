/*
 * ipc.h - private to proto/net: the listening socket of an ipc endpoint, guarded by PATH.lock.
 *
 * libzmq takes a living ipc path from its owner without an error, and unlinks the file at some later
 * time on its own thread. So the socket is made here and handed over (ZMQ_USE_FD), and both files are
 * removed here while the lock is held.
 */
#ifndef DT_NET_IPC_H
#define DT_NET_IPC_H

#include "proto/base/error.h"
#include "proto/net/endpoint.h"

struct dt_ipc_lock;

/* Locks, takes a stale socket file over, binds and listens. `*fd` is the caller's to hand over or to
 * close. NULL: DT_E_ADDRESS_IN_USE (names the pid), DT_E_CANT_CREATE, DT_E_DENIED. */
struct dt_ipc_lock *dt_ipc_listen(const char *path, unsigned mode, int *fd, struct dt_error *err);
struct dt_ipc_lock *dt_ipc_push(struct dt_ipc_lock *list, struct dt_ipc_lock *lock);
/* Unlinks socket and lock file of each in the list and lets the locks go. NULL-safe. */
void dt_ipc_release(struct dt_ipc_lock *list);

#endif
