/*
 * status.c - outcomes: dt_status to the public dtw_status, and their sentences. Any thread.
 */
#include "proto/base/status.h"
#include "worker/lib/client.h"

static enum dtw_status
reject_status(enum dt_status status)
{
    switch ((int)status) {
    case DT_R_LEFT:
        return DTW_CLOSED;
    case DT_R_MALFORMED:
    case DT_R_UNSUPPORTED:
    case DT_R_VERSION:
    case DT_R_WRONG_SHARD:
        return DTW_PROTOCOL;
    case DT_R_RANK_TAKEN:
        return DTW_RANK_TAKEN;
    case DT_R_MISMATCH:
        return DTW_MISMATCH;
    case DT_R_JOB_COMPLETE:
        return DTW_JOB_COMPLETE;
    case DT_R_JOB_FAILED:
        return DTW_JOB_FAILED;
    case DT_R_NO_JOB:
        return DTW_NO_JOB;
    case DT_R_NOT_FINITE:
        return DTW_NOT_FINITE;
    case DT_R_GOING_DOWN:
        return DTW_GOING_DOWN;
    case DT_R_TOO_MANY_BAD:
        return DTW_TOO_MANY_BAD;
    default:
        return DTW_REFUSED;
    }
}

enum dtw_status
client_status(enum dt_status status)
{
    if (status == DT_OK)
        return DTW_OK;
    if ((int)status < DT_E_USAGE)
        return reject_status(status);
    switch ((int)status) {
    case DT_E_NO_MEMORY:
        return DTW_NO_MEMORY;
    case DT_E_RESOLVE:
        return DTW_RESOLVE;
    case DT_E_UNAVAILABLE:
    case DT_E_TIMEOUT:
        return DTW_UNAVAILABLE;
    case DT_E_LOST:
        return DTW_LOST;
    case DT_E_CANCELLED:
        return DTW_CANCELLED;
    case DT_E_CLOSED:
        return DTW_CLOSED;
    case DT_E_FORKED:
        return DTW_FORKED;
    case DT_E_PROTOCOL:
        return DTW_PROTOCOL;
    default:
        return DTW_INTERNAL;
    }
}

static const char *const sentences[] = {
    [DTW_OK] = "ok",
    [DTW_PENDING] = "not complete yet",
    [DTW_LOST] = "this worker's life ended while the request was outstanding: join again",
    [DTW_CANCELLED] = "cancelled",
    [DTW_INTERRUPTED] = "interrupted",
    [DTW_INVALID] = "an argument makes no sense",
    [DTW_NO_MEMORY] = "short of memory",
    [DTW_UNAVAILABLE] = "a ps task does not answer",
    [DTW_RESOLVE] = "a host name that does not resolve, or a malformed endpoint",
    [DTW_MISMATCH] = "parameters or declarations differ from the job's",
    [DTW_RANK_TAKEN] = "another live process has this rank",
    [DTW_JOB_COMPLETE] = "the job is complete and read-only",
    [DTW_JOB_FAILED] = "the job failed",
    [DTW_NO_JOB] = "psd came back without the job",
    [DTW_NOT_FINITE] = "NaN or Inf in a gradient",
    [DTW_TOO_MANY_BAD] = "too many refused pushes in a row",
    [DTW_REFUSED] = "psd refused the request",
    [DTW_PROTOCOL] = "psd answered something illegal",
    [DTW_GOING_DOWN] = "psd is shutting down",
    [DTW_CLOSED] = "the client has left or is closed",
    [DTW_FORKED] = "the client belongs to the parent process",
    [DTW_INTERNAL] = "internal error of libdtworker",
};

const char *
dtw_strerror(enum dtw_status status)
{
    if ((unsigned)status >= sizeof(sentences) / sizeof(sentences[0]) || !sentences[status])
        return "unknown status";
    return sentences[status];
}
