/*
 * zip.c - the directory of a zip archive (PKWARE APPNOTE 4.3); see zip.h. Members: zip_member.c.
 *
 * Invariant: nothing the file says is used before it was compared with the file's size, and the table
 * of members is of fixed size. Threads: none of its own; an object belongs to one thread at a time.
 */
#include "worker/train/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/train/zip_private.h"

#define END_BYTES 22u
#define END_SEARCH (END_BYTES + 65535u)
#define LOCATOR_BYTES 20u
#define ENTRY_BYTES 46u
#define LOCAL_BYTES 30u
#define MAX_DIRECTORY (1u << 20)
#define ZIP64_MARK 0xffffffffu
#define FLAG_ENCRYPTED 0x0001u
#define FLAG_DESCRIPTOR 0x0008u
#define MAX_RATIO 1032u /* of deflate */

static uint32_t
u16_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t
u32_at(const unsigned char *p)
{
    return u16_at(p) | u16_at(p + 2) << 16;
}

static uint64_t
u64_at(const unsigned char *p)
{
    return u32_at(p) | (uint64_t)u32_at(p + 4) << 32;
}

enum dt_status
zip_read_at(const struct zip *z, uint64_t offset, void *buf, size_t n, struct dt_error *err)
{
    for (size_t done = 0; done < n;) {
        unsigned long long at = offset + done;
        ssize_t got = pread(z->fd, (char *)buf + done, n - done, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dt_fail(err, DT_E_IO, "%s: read failed at byte %llu: %s", z->path, at,
                           strerror(errno));
        if (got == 0)
            return dt_fail(err, DT_E_DATA, "%s: became shorter while it was read", z->path);
        done += (size_t)got;
    }
    return DT_OK;
}

static enum dt_status
damaged(const struct zip *z, uint64_t offset, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA, "%s: at byte %llu %s: the archive is damaged, get it again",
                   z->path, (unsigned long long)offset, what);
}

static enum dt_status
refuse_zip64(const struct zip *z, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA,
                   "%s: is a zip64 archive (4 GiB or more): give the arrays as .npy files instead",
                   z->path);
}

/* The offset of the end record in tail[0..n), whose comment must reach to the end; -1: none. */
static int64_t
find_end(const unsigned char *tail, size_t n)
{
    for (size_t at = n - END_BYTES + 1; at-- > 0;) {
        if (memcmp(tail + at, "PK\5\6", 4) == 0 && at + END_BYTES + u16_at(tail + at + 20) == n)
            return (int64_t)at;
    }
    return -1;
}

struct directory {
    uint64_t offset;
    uint64_t bytes;
    uint32_t n;
    unsigned char *data; /* owned */
};

static enum dt_status
take_end(struct zip *z, const unsigned char *end, uint64_t at, bool locator, struct directory *d,
         struct dt_error *err)
{
    d->n = u16_at(end + 10);
    d->bytes = u32_at(end + 12);
    d->offset = u32_at(end + 16);
    if (locator || d->n == 0xffff || d->bytes == ZIP64_MARK || d->offset == ZIP64_MARK)
        return refuse_zip64(z, err);
    if (u16_at(end + 4) != 0 || u16_at(end + 6) != 0 || u16_at(end + 8) != d->n)
        return damaged(z, at, "the end record tells of several parts", err);
    if (d->offset + d->bytes != at)
        return damaged(z, at, "the end record does not follow its directory", err);
    if (d->n > ZIP_MAX_MEMBERS || d->bytes > MAX_DIRECTORY)
        return dt_fail(err, DT_E_DATA, "%s: holds %u members, more than %d are not read", z->path,
                       d->n, ZIP_MAX_MEMBERS);
    z->directory = d->offset;
    return DT_OK;
}

static enum dt_status
read_end(struct zip *z, struct directory *d, struct dt_error *err)
{
    size_t n = z->size < END_SEARCH ? (size_t)z->size : END_SEARCH;
    unsigned char *tail = n >= END_BYTES ? malloc(n) : NULL;

    if (n < END_BYTES)
        return dt_fail(err, DT_E_DATA,
                       "%s: has %llu bytes, too few for a zip archive: get it again", z->path,
                       (unsigned long long)z->size);
    if (!tail)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", z->path);
    enum dt_status s = zip_read_at(z, z->size - n, tail, n, err);
    int64_t at = s == DT_OK ? find_end(tail, n) : -1;
    bool locator = at >= LOCATOR_BYTES && memcmp(tail + at - LOCATOR_BYTES, "PK\6\7", 4) == 0;
    if (s == DT_OK && at < 0)
        s = dt_fail(err, DT_E_DATA,
                    "%s: does not end as a zip archive does: the file was cut or is no .npz file",
                    z->path);
    if (s == DT_OK)
        s = take_end(z, tail + at, z->size - n + (uint64_t)at, locator, d, err);
    free(tail);
    return s;
}

static enum dt_status
check_member(const struct zip *z, const struct zip_entry *e, struct dt_error *err)
{
    if (e->packed == ZIP64_MARK || e->bytes == ZIP64_MARK || e->offset == ZIP64_MARK)
        return refuse_zip64(z, err);
    if (e->flags & FLAG_ENCRYPTED)
        return dt_fail(err, DT_E_DATA, "%s: %s is encrypted: unpack it first", z->path, e->name);
    if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)
        return dt_fail(err, DT_E_DATA,
                       "%s: %s is packed by method %u, read are stored and deflated members: save "
                       "it by numpy.savez",
                       z->path, e->name, e->method);
    if (e->method == ZIP_STORED ? e->bytes != e->packed : e->bytes / MAX_RATIO > e->packed)
        return dt_fail(err, DT_E_DATA,
                       "%s: %s cannot unpack from %llu to %llu bytes: the archive is damaged, get "
                       "it again",
                       z->path, e->name, (unsigned long long)e->packed,
                       (unsigned long long)e->bytes);
    return DT_OK;
}

static bool
good_name(const unsigned char *name, uint32_t n)
{
    for (uint32_t i = 0; i < n && i <= ZIP_MAX_NAME; i++) {
        if (name[i] < ' ' || name[i] >= 0x7f)
            return false;
    }
    return n > 0 && n <= ZIP_MAX_NAME;
}

/* One entry at p, of which `left` bytes are there; *used: its size. */
static enum dt_status
read_entry(struct zip *z, const unsigned char *p, uint64_t left, uint64_t at, uint64_t *used,
           struct dt_error *err)
{
    struct zip_entry *e = &z->entries[z->n_entries];

    if (left < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
        return damaged(z, at, "there is no directory entry", err);
    uint32_t name = u16_at(p + 28);
    *used = (uint64_t)ENTRY_BYTES + name + u16_at(p + 30) + u16_at(p + 32);
    if (left < *used)
        return damaged(z, at, "a directory entry does not end", err);
    if (!good_name(p + ENTRY_BYTES, name))
        return damaged(z, at, "a member has no name of 1 to 63 ASCII characters", err);
    memcpy(e->name, p + ENTRY_BYTES, name);
    e->flags = u16_at(p + 8);
    e->method = u16_at(p + 10);
    e->crc = u32_at(p + 16);
    e->packed = u32_at(p + 20);
    e->bytes = u32_at(p + 24);
    e->offset = u32_at(p + 42);
    if (zip_has(z, e->name))
        return damaged(z, at, "a member has the name of another", err);
    z->n_entries++;
    return check_member(z, e, err);
}

/* The sizes in a local header: those of the directory, or (NumPy writes it so) the mark with both in
 * a zip64 field, or none where they follow the data. */
static bool
local_sizes_agree(const struct zip_entry *e, const unsigned char *p, const unsigned char *extra,
                  uint32_t extra_bytes)
{
    uint32_t packed = u32_at(p + 18);
    uint32_t bytes = u32_at(p + 22);

    if (e->flags & FLAG_DESCRIPTOR)
        return true;
    if (u32_at(p + 14) != e->crc)
        return false;
    if (packed != ZIP64_MARK || bytes != ZIP64_MARK)
        return packed == e->packed && bytes == e->bytes;
    return extra_bytes >= 20 && u16_at(extra) == 1 && u16_at(extra + 2) == 16 &&
           u64_at(extra + 4) == e->bytes && u64_at(extra + 12) == e->packed;
}

static enum dt_status
read_local(struct zip *z, struct zip_entry *e, struct dt_error *err)
{
    unsigned char p[LOCAL_BYTES];
    unsigned char rest[ZIP_MAX_NAME + 20] = {0};
    uint64_t name = strlen(e->name);

    if (e->offset + LOCAL_BYTES + name > z->directory)
        return damaged(z, e->offset, "a member begins behind its end", err);
    enum dt_status s = zip_read_at(z, e->offset, p, sizeof(p), err);
    if (s != DT_OK)
        return s;
    uint32_t extra = u16_at(p + 28);
    e->data = e->offset + LOCAL_BYTES + name + extra;
    if (memcmp(p, "PK\3\4", 4) != 0 || u16_at(p + 26) != name || u16_at(p + 8) != e->method ||
        u16_at(p + 6) != e->flags)
        return damaged(z, e->offset, "there is not the member that the directory tells of", err);
    if (e->data + e->packed > z->directory)
        return damaged(z, e->offset, "a member reaches past the directory", err);
    uint32_t some = extra < 20 ? extra : 20;
    s = zip_read_at(z, e->offset + LOCAL_BYTES, rest, name + some, err);
    if (s == DT_OK && memcmp(rest, e->name, name) != 0)
        s = damaged(z, e->offset, "a member has another name than the directory says", err);
    if (s == DT_OK && !local_sizes_agree(e, p, rest + name, some))
        s = damaged(z, e->offset, "a member has other sizes than the directory says", err);
    return s;
}

static bool
overlaps(const struct zip_entry *a, const struct zip_entry *b)
{
    return a->offset < b->data + b->packed && b->offset < a->data + a->packed;
}

static enum dt_status
check_overlaps(const struct zip *z, struct dt_error *err)
{
    for (uint32_t i = 0; i < z->n_entries; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (overlaps(&z->entries[i], &z->entries[k]))
                return damaged(z, z->entries[i].offset, "two members overlap", err);
        }
    }
    return DT_OK;
}

static enum dt_status
read_entries(struct zip *z, const struct directory *d, struct dt_error *err)
{
    uint64_t at = 0;
    enum dt_status s = zip_read_at(z, d->offset, d->data, d->bytes, err);

    for (uint32_t i = 0; s == DT_OK && i < d->n; i++) {
        uint64_t used = 0;
        s = read_entry(z, d->data + at, d->bytes - at, d->offset + at, &used, err);
        at += used;
    }
    if (s == DT_OK && at != d->bytes)
        s = damaged(z, d->offset + at, "the directory goes on after its last entry", err);
    for (uint32_t i = 0; s == DT_OK && i < z->n_entries; i++)
        s = read_local(z, &z->entries[i], err);
    return s == DT_OK ? check_overlaps(z, err) : s;
}

static enum dt_status
read_directory(struct zip *z, struct dt_error *err)
{
    struct directory d = {0};
    enum dt_status s = read_end(z, &d, err);

    if (s != DT_OK)
        return s;
    d.data = malloc(d.bytes + 1);
    if (!d.data)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", z->path);
    s = read_entries(z, &d, err);
    free(d.data);
    return s;
}

static enum dt_status
open_file(struct zip *z, struct dt_error *err)
{
    struct stat st;

    z->fd = open(z->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (z->fd < 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be opened: %s", z->path, strerror(errno));
    if (fstat(z->fd, &st) != 0)
        return dt_fail(err, DT_E_IO, "%s: %s", z->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return dt_fail(err, DT_E_NO_INPUT, "%s: is not a regular file: name a data file", z->path);
    z->size = (uint64_t)st.st_size;
    return read_directory(z, err);
}

enum dt_status
zip_open(const char *path, struct zip **out, struct dt_error *err)
{
    struct zip *z = calloc(1, sizeof(*z));

    *out = NULL;
    if (z)
        z->fd = -1;
    if (!z || !(z->path = strdup(path))) {
        free(z);
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    }
    enum dt_status s = open_file(z, err);
    if (s != DT_OK)
        zip_close(z);
    else
        *out = z;
    return s;
}

void
zip_close(struct zip *z)
{
    if (!z)
        return;
    if (z->fd >= 0)
        close(z->fd);
    free(z->path);
    free(z);
}

const struct zip_entry *
zip_find(const struct zip *z, const char *name)
{
    for (uint32_t i = 0; i < z->n_entries; i++) {
        if (strcmp(z->entries[i].name, name) == 0)
            return &z->entries[i];
    }
    return NULL;
}

bool
zip_has(const struct zip *z, const char *name)
{
    return zip_find(z, name) != NULL;
}
