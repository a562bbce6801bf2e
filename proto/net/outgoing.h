/*
 * outgoing.h - private to proto/net: frames that libzmq sends from memory that is not its own.
 */
#ifndef DT_NET_OUTGOING_H
#define DT_NET_OUTGOING_H

#include <zmq.h>

#include "proto/net/socket.h"

#define DT_OUT_FRAMES (DT_MAX_ITEMS + 2) /* routing id, header, payload */

struct dt_outgoing { /* the parts of a message, ready to send */
    unsigned n;
    zmq_msg_t frames[DT_OUT_FRAMES];
};

/* A frame with a copy of the bytes. False: no memory. */
bool dt_outgoing_copy(struct dt_outgoing *out, const void *data, size_t bytes);
/* A frame that lends `data`; libzmq calls free_fn(data, hint) once. False: no memory, not called. */
bool dt_outgoing_lend(struct dt_outgoing *out, const void *data, size_t bytes, zmq_free_fn *free_fn,
                      void *hint);
/* Sends all, DONTWAIT; whatever is not taken is closed, which runs its free function. When the first
 * frame is refused nothing is sent. */
enum dt_sent dt_outgoing_send(struct dt_outgoing *out, struct dt_socket *socket);
void dt_outgoing_discard(struct dt_outgoing *out);

#endif
