/*
 * admin_path.h - where the admin socket is. Main thread.
 */
#ifndef PSD_DAEMON_ADMIN_PATH_H
#define PSD_DAEMON_ADMIN_PATH_H

#include "proto/wire/limits.h"
#include "psd/daemon/config.h"

/* The directory of the default admin socket: --private-dir, $RUNTIME_DIRECTORY (systemd), /run/psd for
 * root, else $XDG_RUNTIME_DIR/psd. false: there is none. */
bool admin_directory(const struct config *c, char *out, size_t bytes);

/* "2222" of tcp://127.0.0.1:2222, "ps0" of ipc:///tmp/x/ps0.sock; other characters become '_'. */
void admin_name(const char *endpoint, char *out, size_t bytes);

/* The endpoint to bind, with its directory made (0750); "" when there is to be none (--admin none, or
 * no directory: that is logged). `first` is the first endpoint, as bound. DT_E_CANT_CREATE. */
enum dt_status admin_endpoint(const struct config *c, const char *first,
                              char out[DT_MAX_ENDPOINT + 1], struct dt_error *err);

#endif
