/*
 * signals.h - psd's signals: blocked before anything else, read from a signalfd by the main thread.
 */
#ifndef PSD_DAEMON_SIGNALS_H
#define PSD_DAEMON_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Block SIGTERM, SIGINT, SIGHUP and SIGALRM and ignore SIGPIPE. Threads made later inherit it. */
void signals_block(void);
int signals_open(void);   /* a non-blocking signalfd for TERM, INT and HUP, or -1 */
int signals_read(int fd); /* the next signal's number, 0 if there is none */

/* From now on a second SIGTERM or SIGINT ends the process at once (default action, but the files of
 * leftovers.h are removed), and after `timeout_ms` the process ends with exit code 70 and a line in the log. `by_signal`: the first one
 * has come; else the stop has another reason and the next signal is the first. Main thread. */
void signals_begin_stop(int64_t timeout_ms, bool by_signal);

#endif
