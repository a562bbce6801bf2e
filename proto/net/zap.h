/*
 * zap.h - private to proto/net: the thread that answers authentication requests (RFC 27, ZAP).
 */
#ifndef DT_NET_ZAP_H
#define DT_NET_ZAP_H

#include <pthread.h>

/* Binds the handler's socket and starts the thread. The thread ends when the libzmq context is shut
 * down and closes its socket. 0, or -1 with errno. */
int dt_zap_start(void *zmq, pthread_t *thread);

#endif
