/*
 * record.h - the record of one rank's exchanges: an append-only file, written by --record, read by replay.
 *
 * DIR/rank-R.rec: the eight bytes "DTWREC1\n", then frames [kind u8, bytes of payload u32, payload, check u32], integers
 * little-endian. The check is over kind, number of the frame and payload, so a file that was cut, damaged or put
 * together from two is told. Payloads:
 *   HEADER  JSON text (whoever records: options, kernels, data); the first frame
 *   SLICES  the step that the rank began at; per slice: variable, start, n (varints); the second frame
 *   PULL    fingerprint of the values u64; per slice the version pulled, less the one held before (zigzag varint)
 *   PUSH    fingerprint of what was pushed u64; per slice 0, or how far the version made is past the held one (varint)
 *   STEP    PUSH's payload, then PULL's
 *   END     enum record_end u8, stopped by the job's stop step u8, fingerprint of the final values u64; the last frame
 */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/error.h"
#include "worker/lib/dtworker.h"

enum record_kind {
    RECORD_HEADER = 1,
    RECORD_SLICES = 2,
    RECORD_PULL = 3,
    RECORD_PUSH = 4,
    RECORD_STEP = 5,
    RECORD_END = 6,
};

enum record_end {
    RECORD_COMPLETE = 0, /* nothing is unknown */
    RECORD_GIVEN_UP =
        1,           /* within an exchange: a signal or an error; what psd made of it is unknown */
    RECORD_LOST = 2, /* the worker's life ended: likewise */
};

struct record_slice {
    uint32_t variable;
    uint64_t start, n;
};

struct record { /* a frame, decoded */
    enum record_kind kind;
    uint64_t number;  /* of the frame in its file, from 0 */
    const char *text; /* HEADER; borrowed until the next frame */
    size_t text_bytes;
    uint64_t pushed;      /* PUSH, STEP: the fingerprint */
    const uint64_t *made; /* likewise, by slice; DTW_NO_VERSION: none. Borrowed */
    uint64_t pulled;      /* PULL, STEP: the fingerprint */
    const uint64_t *held; /* likewise, by slice: the version pulled. Borrowed */
    enum record_end end;  /* END */
    bool stopped;         /* END: the job's stop step had come */
    uint64_t final;       /* END: fingerprint of the final values; 0: stopped within a window */
};

static inline bool
record_has_push(const struct record *r)
{
    return r->kind == RECORD_PUSH || r->kind == RECORD_STEP;
}

static inline bool
record_has_pull(const struct record *r)
{
    return r->kind == RECORD_PULL || r->kind == RECORD_STEP;
}

struct record_writer; /* opaque; one thread */

/* Makes DIR where it is not there, and the file, which must not be there. */
enum dt_status record_create(const char *dir, uint32_t rank, struct record_writer **out,
                             struct dt_error *err);
/* The first error stays, and nothing is written any more; record_close tells it. `text`: HEADER. */
void record_write_header(struct record_writer *w, const char *text);
void record_write_slices(struct record_writer *w, uint64_t first_step,
                         const struct dtw_slice *slices, uint64_t n);
/* `slices` as dtw_slices tells them after the exchange. */
void record_write_exchange(struct record_writer *w, enum record_kind kind,
                           const struct dtw_slice *slices, uint64_t pushed, uint64_t pulled);
void record_write_end(struct record_writer *w, enum record_end end, bool stopped, uint64_t final);
/* NULL-safe. DT_E_IO with what failed first. */
enum dt_status record_close(struct record_writer *w, struct dt_error *err);

struct record_reader; /* opaque; one thread */

enum dt_status record_open(const char *path, struct record_reader **out, struct dt_error *err);
void record_free(struct record_reader *r); /* NULL-safe */
const char *record_path(const struct record_reader *r);
uint64_t record_n_slices(const struct record_reader *r); /* 0 before SLICES */
const struct record_slice *record_slices(const struct record_reader *r);
uint64_t record_first_step(const struct record_reader *r);
/* The next frame; behind END there is none (DT_E_INTERNAL). DT_E_DATA names file, offset and what is wrong. */
enum dt_status record_next(struct record_reader *r, struct record *out, struct dt_error *err);

/* "DIR/rank-R.rec"; false: too long. */
bool record_file_name(const char *dir, uint32_t rank, char *out, size_t size);

#endif
