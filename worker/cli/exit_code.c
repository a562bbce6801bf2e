/*
 * exit_code.c - outcomes of the library to exit codes. A pure table; any thread.
 */
#include "worker/cli/exit_code.h"

#include <stddef.h>

static const int codes[] = {
    [DTW_OK] = 0,           [DTW_PENDING] = 75,  [DTW_LOST] = 75,       [DTW_CANCELLED] = 75,
    [DTW_INTERRUPTED] = 75, [DTW_INVALID] = 64,  [DTW_NO_MEMORY] = 70,  [DTW_UNAVAILABLE] = 69,
    [DTW_RESOLVE] = 69,     [DTW_MISMATCH] = 78, [DTW_RANK_TAKEN] = 75, [DTW_JOB_COMPLETE] = 73,
    [DTW_JOB_FAILED] = 75,  [DTW_NO_JOB] = 75,   [DTW_NOT_FINITE] = 65, [DTW_TOO_MANY_BAD] = 65,
    [DTW_REFUSED] = 76,     [DTW_PROTOCOL] = 76, [DTW_GOING_DOWN] = 75, [DTW_CLOSED] = 70,
    [DTW_FORKED] = 70,      [DTW_INTERNAL] = 70,
};

int
exit_code_of(enum dtw_status status)
{
    size_t i = (size_t)status;

    return i < sizeof(codes) / sizeof(codes[0]) ? codes[i] : 70;
}
