/*
 * exit_code.h - how an outcome of the library ends the program (sysexits, DESIGN section 11).
 */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include "worker/lib/dtworker.h"

#define EXIT_CODE_DATA 65
#define EXIT_CODE_TEMPORARY 75

int exit_code_of(enum dtw_status status); /* 0 for DTW_OK */

#endif
