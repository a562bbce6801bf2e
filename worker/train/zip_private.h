/*
 * zip_private.h - what zip.c and zip_member.c share.
 */
#ifndef TRAIN_ZIP_PRIVATE_H
#define TRAIN_ZIP_PRIVATE_H

#include "worker/train/zip.h"

#define ZIP_STORED 0u
#define ZIP_DEFLATED 8u

struct zip_entry {
    char name[ZIP_MAX_NAME + 1];
    uint32_t flags;
    uint32_t method;
    uint32_t crc;
    uint64_t packed; /* bytes in the file */
    uint64_t bytes;  /* bytes unpacked */
    uint64_t offset; /* of the local header */
    uint64_t data;   /* offset of the first packed byte */
};

struct zip {
    char *path; /* owned */
    int fd;
    uint64_t size;
    uint64_t directory; /* offset: members lie before it */
    uint32_t n_entries;
    struct zip_entry entries[ZIP_MAX_MEMBERS];
};

const struct zip_entry *zip_find(const struct zip *z, const char *name); /* NULL: none */
/* All `n` bytes. */
enum dt_status zip_read_at(const struct zip *z, uint64_t offset, void *buf, size_t n,
                           struct dt_error *err);

#endif
