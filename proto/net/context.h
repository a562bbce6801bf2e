/*
 * context.h - the libzmq context with its ZAP thread.
 *
 * The ZAP handler answers every handshake of a socket that has ZAP_DOMAIN set (all our ROUTERs); for
 * now every NULL-mechanism peer passes. It is bound before any socket binds (CONTRACT section 3).
 */
#ifndef DT_NET_CONTEXT_H
#define DT_NET_CONTEXT_H

#include <stdbool.h>

#include "proto/base/error.h"

struct dt_context;

/* `zap`: start the ZAP thread (servers). Signals must be blocked by the caller before the call in
 * programs that read them from a signalfd; in the library all signals are blocked around it here, so
 * that libzmq's threads never take the application's signals. */
struct dt_context *dt_context_create(bool zap, int io_threads, struct dt_error *err);
/* All sockets must be closed. Joins the ZAP thread. */
void dt_context_destroy(struct dt_context *context);

/* tcp://HOST:PORT or ipc://PATH? Syntax only: DT_E_RESOLVE with one clear line. */
enum dt_status dt_endpoint_check(const char *endpoint, struct dt_error *err);
/* Does the host of a tcp endpoint resolve (getaddrinfo)? DT_E_RESOLVE with the name. ipc: always. */
enum dt_status dt_endpoint_resolve(const char *endpoint, struct dt_error *err);
/* ipc, or tcp on a loopback address only? */
bool dt_endpoint_is_local(const char *endpoint);
/* Are both the same port of an address, or the same file (or the lock file of the other's), so that they
 * cannot be bound side by side? Resolves hosts; false for port 0 and where a host does not resolve. */
bool dt_endpoint_meets(const char *a, const char *b);
/* Do both name the same place, as texts: a host in any case and a port, or one file? Resolves nothing. */
bool dt_endpoint_is_same(const char *a, const char *b);
/* "tcp://host:2222" + port "49123" -> "tcp://host:49123"; "ipc:///x" + ".1" -> "ipc:///x.1". */
enum dt_status dt_endpoint_peer(const char *endpoint, const char *peer, char *out,
                                unsigned out_bytes);

#endif
