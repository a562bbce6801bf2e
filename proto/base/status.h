/*
 * status.h - the one list of outcomes used by every part of the project.
 *
 * Three ranges:
 *   0..15     outcomes of a request that went well (also sent in replies)
 *   DT_R_*    reject: the peer asked for something wrong. Becomes a reply; the process lives.
 *   DT_E_*    environment: our machine or our bug. Goes up unchanged, logged once, never on the wire.
 *
 * The numbers of the first two ranges are part of the protocol (psd-protocol(7)) and never change.
 */
#ifndef DT_BASE_STATUS_H
#define DT_BASE_STATUS_H

#include <stdbool.h>

enum dt_status {
    DT_OK = 0,
    DT_PARKED = 1, /* provisional reply: the request waits; the final reply follows */

    DT_R_HELLO_REQUIRED = 16,  /* no session on this connection: say HELLO */
    DT_R_HELLO_FIRST = 17,     /* say HELLO to shard 0 first (the life named is not attached) */
    DT_R_LEFT = 18,            /* this life's LEAVE is recorded */
    DT_R_MALFORMED = 19,       /* not a legal message */
    DT_R_UNSUPPORTED = 20,     /* unknown op, or one that this psd does not offer */
    DT_R_VERSION = 21,         /* another protocol version */
    DT_R_RANK_TAKEN = 22,      /* the rank has a live lease of another process */
    DT_R_MISMATCH = 23,        /* differs from what the job was opened with */
    DT_R_JOB_COMPLETE = 24,    /* the job is complete and read-only */
    DT_R_JOB_FAILED = 25,      /* the job failed (on-loss fail) */
    DT_R_NO_JOB = 26,          /* psd does not have this job (any more) */
    DT_R_QUOTA = 27,           /* max_session_bytes, memory_quota or another limit */
    DT_R_NOT_FINITE = 28,      /* NaN or Inf in the payload */
    DT_R_NO_VARIABLE = 29,     /* no such variable or slice */
    DT_R_WRONG_SHARD = 30,     /* the slice lives on another shard */
    DT_R_GOING_DOWN = 31,      /* psd is shutting down */
    DT_R_DENIED = 32,          /* not allowed on this connection */
    DT_R_NOT_MEMBER = 33,      /* the rank is not a member of that step */
    DT_R_BAD_VALUE = 34,       /* a field has a value that makes no sense */
    DT_R_NOT_INITIALISED = 35, /* the variables have no initial values yet */
    DT_R_TOO_MANY_BAD = 36,    /* max-bad refused pushes in a row: stop */

    DT_E_USAGE = 1000, /* command line */
    DT_E_CONFIG,       /* configuration */
    DT_E_DATA,         /* input data are not as they should be */
    DT_E_NO_INPUT,     /* input cannot be opened */
    DT_E_CANT_CREATE,  /* output cannot be created */
    DT_E_IO,           /* read or write failed */
    DT_E_NO_MEMORY,    /* allocation failed */
    DT_E_ADDRESS_IN_USE,
    DT_E_RESOLVE,     /* a host name that does not resolve, or a malformed endpoint */
    DT_E_UNAVAILABLE, /* the server did not answer until the deadline */
    DT_E_TIMEOUT,     /* a deadline passed, the request is still outstanding */
    DT_E_LOST,        /* the worker's life ended (lease) while the request was outstanding */
    DT_E_CANCELLED,
    DT_E_CLOSED,
    DT_E_FORKED,    /* used after fork */
    DT_E_PROTOCOL,  /* the server answered something illegal */
    DT_E_TEMPORARY, /* try again later */
    DT_E_DENIED,
    DT_E_INTERNAL, /* our bug */
};

static inline bool
dt_status_is_reject(enum dt_status s)
{
    return s >= DT_R_HELLO_REQUIRED && s < DT_E_USAGE;
}

/* A short fixed sentence for `s`, never NULL; unknown numbers give "unknown status". */
const char *dt_status_text(enum dt_status s);

/* The sysexits code with which a program ends because of `s` (0 for DT_OK). See DESIGN section 11:
 * 64 usage, 65 data, 66 no input, 69 unavailable, 70 internal, 73 cannot create, 74 I/O,
 * 75 temporary, 76 protocol, 77 not authorised, 78 configuration. */
int dt_status_exit_code(enum dt_status s);

#endif
