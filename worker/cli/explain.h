/*
 * explain.h - what went wrong with psd, in the words of dtworker's options, and what may help.
 */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "worker/lib/dtworker.h"

#define EXPLAIN_MAX 1024 /* with its NUL; what is longer is cut */

/* One line of what the library says: its error's text, "" where it has none. */
void explain(enum dtw_status status, const char *text, char out[EXPLAIN_MAX]);

#endif
