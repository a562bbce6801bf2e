/*
 * leftovers.h - the files of the ipc endpoints, for an end that has no time to close sockets: a second signal, or
 * a stop that is stuck.
 *
 * Thread rule: main thread; leftovers_remove may be called in a signal's handler.
 */
#ifndef PSD_DAEMON_LEFTOVERS_H
#define PSD_DAEMON_LEFTOVERS_H

/* `endpoint` is bound: PATH and PATH.lock of ipc://PATH are remembered as they are now. */
void leftovers_note(const char *endpoint);
void leftovers_forget(void); /* all of them: they are closed */
/* Unlinks those that are still the files that were noted: not what another psd made under the same name. */
void leftovers_remove(void);

#endif
