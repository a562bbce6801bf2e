/*
 * zip.h - private to npz.c: members of a zip archive, stored or deflated, read in order.
 *
 * The central directory is checked whole against the file's size before a member is read: every member
 * lies inside the file, none overlaps another, no name twice. No encryption, no parts, no zip64.
 */
#ifndef TRAIN_ZIP_H
#define TRAIN_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

#define ZIP_MAX_MEMBERS 256
#define ZIP_MAX_NAME 63

struct zip;
struct zip_member;

/* DT_E_NO_INPUT, DT_E_DATA, DT_E_IO, DT_E_NO_MEMORY. `path` is copied. */
enum dt_status zip_open(const char *path, struct zip **out, struct dt_error *err);
void zip_close(struct zip *z); /* NULL-safe; after its members */
bool zip_has(const struct zip *z, const char *name);

/* Open the member `name`, which must be there. */
enum dt_status zip_member_open(struct zip *z, const char *name, struct zip_member **out,
                               struct dt_error *err);
void zip_member_close(struct zip_member *m); /* NULL-safe */
/* Up to `want` unpacked bytes; *got < want only at the end, where size and check sum were verified. */
enum dt_status zip_member_read(struct zip_member *m, void *buf, size_t want, size_t *got,
                               struct dt_error *err);
uint64_t zip_member_bytes(const struct zip_member *m);   /* unpacked, as the directory says */
const char *zip_member_name(const struct zip_member *m); /* "FILE: NAME" for messages */

#endif
