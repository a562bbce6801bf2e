/*
 * gzfile.c - sequential reader of plain and gzip files.
 *
 * Invariant: memory is one fixed input buffer, whatever the file says. zlib's own gzread is not used,
 * because it takes damaged files for plain ones and ignores what follows a member.
 * Threads: none of its own; an object belongs to one thread at a time.
 */
#include "worker/train/gzfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define INPUT_BYTES (64u * 1024)

struct gzfile {
    char *path; /* owned */
    int fd;
    bool packed;
    bool z_open;   /* z is initialised */
    bool member;   /* inside a gzip member */
    bool raw_end;  /* read(2) has told the end */
    uint64_t size; /* of the file */
    uint64_t raw;  /* bytes read from the file */
    uint64_t offset;
    z_stream z; /* next_in, avail_in: the part of `input` that is left, also for a plain file */
    unsigned char input[INPUT_BYTES];
};

/* Bytes of the file that were used up. */
static unsigned long long
used(const struct gzfile *f)
{
    return f->raw - f->z.avail_in;
}

/* Append to the input buffer; sets raw_end at the end of the file. */
static enum dt_status
fill(struct gzfile *f, struct dt_error *err)
{
    memmove(f->input, f->z.next_in, f->z.avail_in);
    f->z.next_in = f->input;
    ssize_t n;
    do
        n = read(f->fd, f->input + f->z.avail_in, INPUT_BYTES - f->z.avail_in);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return dt_fail(err, DT_E_IO, "%s: read failed at byte %llu: %s", f->path, used(f),
                       strerror(errno));
    f->raw_end = n == 0;
    f->raw += (uint64_t)n;
    f->z.avail_in += (unsigned)n;
    return DT_OK;
}

/* Make at least `n` bytes of input ready unless the file ends before. */
static enum dt_status
require(struct gzfile *f, unsigned n, struct dt_error *err)
{
    while (f->z.avail_in < n && !f->raw_end) {
        enum dt_status s = fill(f, err);
        if (s != DT_OK)
            return s;
    }
    return DT_OK;
}

static bool
starts_gzip(const struct gzfile *f)
{
    return f->z.avail_in >= 2 && f->z.next_in[0] == 0x1f && f->z.next_in[1] == 0x8b;
}

static enum dt_status
open_file(struct gzfile *f, struct dt_error *err)
{
    struct stat st;

    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return dt_fail(err, DT_E_NO_INPUT, "%s: cannot be opened: %s", f->path, strerror(errno));
    if (fstat(f->fd, &st) != 0)
        return dt_fail(err, DT_E_IO, "%s: %s", f->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return dt_fail(err, DT_E_NO_INPUT, "%s: is not a regular file: name a data file", f->path);
    f->size = (uint64_t)st.st_size;
    f->z.next_in = f->input;
    enum dt_status s = require(f, 2, err);
    if (s != DT_OK || !starts_gzip(f))
        return s;
    f->packed = f->member = true;
    if (inflateInit2(&f->z, MAX_WBITS + 16) != Z_OK)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory to unpack it", f->path);
    f->z_open = true;
    return DT_OK;
}

enum dt_status
gzfile_open(const char *path, struct gzfile **out, struct dt_error *err)
{
    struct gzfile *f = calloc(1, sizeof(*f));

    *out = NULL;
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    }
    enum dt_status s = open_file(f, err);
    if (s != DT_OK) {
        gzfile_close(f);
        return s;
    }
    *out = f;
    return DT_OK;
}

void
gzfile_close(struct gzfile *f)
{
    if (!f)
        return;
    if (f->z_open)
        inflateEnd(&f->z);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

static enum dt_status
read_plain(struct gzfile *f, unsigned char *buf, size_t want, size_t *got, struct dt_error *err)
{
    while (*got < want) {
        enum dt_status s = require(f, 1, err);
        if (s != DT_OK)
            return s;
        if (f->z.avail_in == 0)
            return DT_OK;
        size_t n = want - *got < f->z.avail_in ? want - *got : f->z.avail_in;
        memcpy(buf + *got, f->z.next_in, n);
        f->z.next_in += n;
        f->z.avail_in -= (unsigned)n;
        f->offset += n;
        *got += n;
    }
    return DT_OK;
}

/* Between members: begin the next one, or find the end. */
static enum dt_status
next_member(struct gzfile *f, bool *end, struct dt_error *err)
{
    enum dt_status s = require(f, 2, err);

    *end = s == DT_OK && f->z.avail_in == 0;
    if (s != DT_OK || *end)
        return s;
    if (!starts_gzip(f))
        return dt_fail(
            err, DT_E_DATA,
            "%s: bytes that are not gzip follow the data at byte %llu of the file: get the "
            "file again",
            f->path, used(f));
    inflateReset(&f->z);
    f->member = true;
    return DT_OK;
}

/* One call of inflate for at most `want` bytes. */
static enum dt_status
inflate_some(struct gzfile *f, unsigned char *buf, size_t want, size_t *n, struct dt_error *err)
{
    enum dt_status s = require(f, 1, err);

    if (s != DT_OK)
        return s;
    f->z.next_out = buf;
    f->z.avail_out = want < INPUT_BYTES ? (unsigned)want : INPUT_BYTES;
    unsigned room = f->z.avail_out;
    int r = inflate(&f->z, Z_NO_FLUSH);
    *n = room - f->z.avail_out;
    f->offset += *n;
    if (r == Z_STREAM_END)
        f->member = false;
    if (r == Z_MEM_ERROR)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory to unpack it", f->path);
    if (r == Z_DATA_ERROR || r == Z_NEED_DICT || r == Z_STREAM_ERROR)
        return dt_fail(
            err, DT_E_DATA,
            "%s: gzip data are damaged at byte %llu of the file (%s): get the file again", f->path,
            used(f), f->z.msg ? f->z.msg : "unknown form");
    if (f->member && *n == 0 && f->z.avail_in == 0 && f->raw_end)
        return dt_fail(
            err, DT_E_DATA,
            "%s: gzip data stop at byte %llu, where the file ends (%llu bytes unpacked): "
            "the file was cut, get it again",
            f->path, used(f), (unsigned long long)f->offset);
    return DT_OK;
}

static enum dt_status
read_packed(struct gzfile *f, unsigned char *buf, size_t want, size_t *got, struct dt_error *err)
{
    enum dt_status s;

    while (*got < want) {
        size_t n = 0;
        if (!f->member) {
            bool end;
            s = next_member(f, &end, err);
            if (s != DT_OK || end)
                return s;
        }
        s = inflate_some(f, buf + *got, want - *got, &n, err);
        *got += n;
        if (s != DT_OK)
            return s;
    }
    return DT_OK;
}

enum dt_status
gzfile_read(struct gzfile *f, void *buf, size_t want, size_t *got, struct dt_error *err)
{
    *got = 0;
    return f->packed ? read_packed(f, buf, want, got, err) : read_plain(f, buf, want, got, err);
}

const char *
gzfile_path(const struct gzfile *f)
{
    return f->path;
}

bool
gzfile_is_packed(const struct gzfile *f)
{
    return f->packed;
}

uint64_t
gzfile_offset(const struct gzfile *f)
{
    return f->offset;
}

uint64_t
gzfile_bytes(const struct gzfile *f)
{
    return f->size;
}
