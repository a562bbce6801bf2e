/*
 * endpoint.h - an endpoint in its parts.
 */
#ifndef DT_NET_ENDPOINT_H
#define DT_NET_ENDPOINT_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/wire/limits.h"

#define DT_IPC_PATH_BYTES 107 /* sun_path without its NUL */

struct addrinfo;

struct dt_endpoint {
    bool is_ipc;
    char path[DT_MAX_ENDPOINT + 1]; /* ipc */
    char host[DT_MAX_ENDPOINT + 1]; /* tcp; without brackets */
    char port[8];                   /* digits or "*" */
    unsigned number;                /* of the port; 0: any that is free, and ipc */
};

enum dt_status dt_endpoint_split(const char *endpoint, struct dt_endpoint *out,
                                 struct dt_error *err);
/* getaddrinfo of a tcp host; the caller frees the list. DT_E_RESOLVE. */
enum dt_status dt_endpoint_lookup(const struct dt_endpoint *e, struct addrinfo **list,
                                  struct dt_error *err);
/* The address of the list that is bound: the first of IPv4, else the first. */
const struct addrinfo *dt_endpoint_choose(const struct addrinfo *list);

#endif
