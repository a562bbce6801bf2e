/*
 * gzfile.h - a file read in order, plain or gzip under either name (told by its first two bytes).
 *
 * Every error is one line that names the file, the place and what to do. The check sum and the length
 * at the end of gzip data are verified; members may follow each other.
 */
#ifndef TRAIN_GZFILE_H
#define TRAIN_GZFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

struct gzfile; /* opaque; one thread at a time */

/* DT_E_NO_INPUT when it cannot be opened or is not a regular file. `path` is copied. */
enum dt_status gzfile_open(const char *path, struct gzfile **out, struct dt_error *err);
void gzfile_close(struct gzfile *f); /* NULL-safe */

/* Up to `want` unpacked bytes; *got < want only at the end. DT_E_DATA: damaged or cut; DT_E_IO. */
enum dt_status gzfile_read(struct gzfile *f, void *buf, size_t want, size_t *got,
                           struct dt_error *err);

const char *gzfile_path(const struct gzfile *f);
bool gzfile_is_packed(const struct gzfile *f);
uint64_t gzfile_offset(const struct gzfile *f); /* unpacked bytes delivered */
uint64_t gzfile_bytes(const struct gzfile *f);  /* size of the file itself */

#endif
