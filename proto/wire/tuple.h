/*
 * tuple.h - private to proto/wire: an array read as a row of fields. Missing fields take their
 * default, fields that are not known are skipped; and texts that are safe to print.
 */
#ifndef DT_WIRE_TUPLE_H
#define DT_WIRE_TUPLE_H

#include "proto/wire/reader.h"

struct dt_tuple {
    struct dt_reader *r; /* borrowed */
    uint32_t n_left;
};

#define DT_TUPLE_FIELDS 64 /* at most, in one tuple */

void dt_tuple_open(struct dt_tuple *t, struct dt_reader *r);
bool dt_tuple_next(struct dt_tuple *t);
/* `def` when missing or nil. */
uint64_t dt_tuple_u64(struct dt_tuple *t, uint64_t max, uint64_t def);
void dt_tuple_close(struct dt_tuple *t); /* skips what was not read */

/* As dt_read_cstr; control characters are replaced, so that the text can be logged as one line. */
void dt_read_text(struct dt_reader *r, char *out, size_t out_bytes);
/* Not empty, and of [A-Za-z0-9_./:-] only? */
bool dt_is_name(const char *s);
/* One well-formed object and nothing behind it? */
bool dt_is_one_object(const void *data, size_t bytes);

#endif
