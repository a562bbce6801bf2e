/*
 * status.c - the sentences and exit codes of outcomes. Pure tables; any thread.
 */
#include "proto/base/status.h"

#include <stddef.h>

struct row {
    enum dt_status status;
    int exit_code;
    const char *text;
};

static const struct row rows[] = {
    {DT_OK, 0, "ok"},
    {DT_PARKED, 0, "the request waits"},
    {DT_R_HELLO_REQUIRED, 75, "no session on this connection: say HELLO"},
    {DT_R_HELLO_FIRST, 75, "say HELLO to shard 0 first"},
    {DT_R_LEFT, 0, "this worker has left the job"},
    {DT_R_MALFORMED, 76, "malformed message"},
    {DT_R_UNSUPPORTED, 76, "operation not offered by this psd"},
    {DT_R_VERSION, 76, "another protocol version"},
    {DT_R_RANK_TAKEN, 75, "another live process has this rank"},
    {DT_R_MISMATCH, 78, "differs from what the job was opened with"},
    {DT_R_JOB_COMPLETE, 73, "the job is complete and read-only"},
    {DT_R_JOB_FAILED, 75, "the job failed"},
    {DT_R_NO_JOB, 75, "psd does not have this job"},
    {DT_R_QUOTA, 75, "a limit of psd is reached"},
    {DT_R_NOT_FINITE, 65, "NaN or Inf in the payload"},
    {DT_R_NO_VARIABLE, 76, "no such variable or slice"},
    {DT_R_WRONG_SHARD, 76, "the request goes to another shard"},
    {DT_R_GOING_DOWN, 75, "psd is shutting down"},
    {DT_R_DENIED, 77, "not allowed on this connection"},
    {DT_R_NOT_MEMBER, 76, "the rank is not a member of that step"},
    {DT_R_BAD_VALUE, 76, "a field has a value that makes no sense"},
    {DT_R_NOT_INITIALISED, 76, "the variables have no initial values yet"},
    {DT_R_TOO_MANY_BAD, 65, "too many refused pushes in a row"},
    {DT_E_USAGE, 64, "wrong usage"},
    {DT_E_CONFIG, 78, "wrong configuration"},
    {DT_E_DATA, 65, "wrong input data"},
    {DT_E_NO_INPUT, 66, "input cannot be opened"},
    {DT_E_CANT_CREATE, 73, "output cannot be created"},
    {DT_E_IO, 74, "read or write failed"},
    {DT_E_NO_MEMORY, 70, "out of memory"},
    {DT_E_ADDRESS_IN_USE, 69, "address in use"},
    {DT_E_RESOLVE, 69, "address does not resolve"},
    {DT_E_UNAVAILABLE, 69, "the server does not answer"},
    {DT_E_TIMEOUT, 75, "timed out"},
    {DT_E_LOST, 75, "the worker's life has ended"},
    {DT_E_CANCELLED, 75, "cancelled"},
    {DT_E_CLOSED, 70, "closed"},
    {DT_E_FORKED, 70, "used after fork"},
    {DT_E_PROTOCOL, 76, "the server answered something illegal"},
    {DT_E_TEMPORARY, 75, "try again later"},
    {DT_E_DENIED, 77, "not authorised"},
    {DT_E_INTERNAL, 70, "internal error"},
};

static const struct row *
find(enum dt_status s)
{
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == s)
            return &rows[i];
    }
    return NULL;
}

const char *
dt_status_text(enum dt_status s)
{
    const struct row *row = find(s);

    return row ? row->text : "unknown status";
}

int
dt_status_exit_code(enum dt_status s)
{
    const struct row *row = find(s);

    return row ? row->exit_code : 70;
}
