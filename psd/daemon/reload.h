/*
 * reload.h - what SIGHUP may change: the options marked DT_OPT_RELOAD. Main thread.
 */
#ifndef PSD_DAEMON_RELOAD_H
#define PSD_DAEMON_RELOAD_H

#include "psd/daemon/config.h"

struct reload_count {
    unsigned changed;
    unsigned refused; /* they need a restart */
};

/* Take into `live` what may change of `fresh`; each difference is a line in the log. `most_window`: what
 * the sockets were made for; fresh->window is lowered to it. Strings and lists of `live` may be
 * borrowed: they are never touched. */
struct reload_count reload_adopt(struct config *live, struct config *fresh, uint64_t most_window);

#endif
