/*
 * zip_member.c - the unpacked bytes of one member of a zip archive.
 *
 * Invariant: at most the unpacked size that the directory claims is delivered, and its end only after
 * size and check sum were right. Memory is one fixed input buffer. Threads: as zip.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "worker/train/zip_private.h"

#define INPUT_BYTES (64u << 10)

struct zip_member {
    const struct zip *zip;         /* borrowed */
    const struct zip_entry *entry; /* borrowed */
    char *name;                    /* owned */
    uint64_t taken;                /* packed bytes read from the file */
    uint64_t given;                /* unpacked bytes delivered */
    uint32_t crc;
    bool z_open;
    bool z_end;
    z_stream z;
    unsigned char input[INPUT_BYTES];
};

enum dt_status
zip_member_open(struct zip *z, const char *name, struct zip_member **out, struct dt_error *err)
{
    const struct zip_entry *e = zip_find(z, name);
    struct zip_member *m = calloc(1, sizeof(*m));

    *out = NULL;
    if (!e) {
        free(m);
        return dt_fail(err, DT_E_DATA, "%s: holds no %s", z->path, name);
    }
    if (!m || asprintf(&m->name, "%s: %s", z->path, name) < 0) {
        free(m);
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", z->path);
    }
    m->zip = z;
    m->entry = e;
    m->crc = (uint32_t)crc32(0, NULL, 0);
    m->z_open = e->method == ZIP_DEFLATED && inflateInit2(&m->z, -MAX_WBITS) == Z_OK;
    if (e->method == ZIP_DEFLATED && !m->z_open) {
        zip_member_close(m);
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory to unpack it", z->path);
    }
    *out = m;
    return DT_OK;
}

void
zip_member_close(struct zip_member *m)
{
    if (!m)
        return;
    if (m->z_open)
        inflateEnd(&m->z);
    free(m->name);
    free(m);
}

static enum dt_status
damaged(const struct zip_member *m, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA,
                   "%s: %s after %llu unpacked bytes: the archive is damaged, get "
                   "it again",
                   m->name, what, (unsigned long long)m->given);
}

/* More packed bytes, when there are some and none is left. */
static enum dt_status
fill(struct zip_member *m, struct dt_error *err)
{
    uint64_t left = m->entry->packed - m->taken;
    unsigned n = left < INPUT_BYTES ? (unsigned)left : INPUT_BYTES;

    if (m->z.avail_in > 0 || n == 0)
        return DT_OK;
    enum dt_status s = zip_read_at(m->zip, m->entry->data + m->taken, m->input, n, err);
    m->z.next_in = m->input;
    m->z.avail_in = s == DT_OK ? n : 0;
    m->taken += m->z.avail_in;
    return s;
}

/* One call of inflate for at most `want` bytes; none without progress. */
static enum dt_status
inflate_some(struct zip_member *m, unsigned char *buf, size_t want, size_t *n, struct dt_error *err)
{
    enum dt_status s = fill(m, err);

    if (s != DT_OK)
        return s;
    m->z.next_out = buf;
    m->z.avail_out = want < INPUT_BYTES ? (unsigned)want : INPUT_BYTES;
    unsigned room = m->z.avail_out;
    unsigned had = m->z.avail_in;
    int r = inflate(&m->z, Z_NO_FLUSH);
    *n = room - m->z.avail_out;
    m->z_end = r == Z_STREAM_END;
    if (r == Z_MEM_ERROR)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: no memory to unpack it", m->name);
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
        return damaged(m, m->z.msg ? m->z.msg : "data of an unknown form", err);
    if (!m->z_end && *n == 0 && m->z.avail_in == had)
        return damaged(m, "the packed data end", err);
    return DT_OK;
}

static enum dt_status
read_stored(struct zip_member *m, unsigned char *buf, size_t want, size_t *got,
            struct dt_error *err)
{
    enum dt_status s = zip_read_at(m->zip, m->entry->data + m->given, buf, want, err);

    *got = s == DT_OK ? want : 0;
    return s;
}

static enum dt_status
read_deflated(struct zip_member *m, unsigned char *buf, size_t want, size_t *got,
              struct dt_error *err)
{
    while (*got < want) {
        size_t n = 0;
        if (m->z_end)
            return damaged(m, "the packed data end", err);
        enum dt_status s = inflate_some(m, buf + *got, want - *got, &n, err);
        *got += n;
        if (s != DT_OK)
            return s;
    }
    return DT_OK;
}

/* All claimed bytes are delivered: nothing may follow, and the check sum must be right. */
static enum dt_status
check_end(struct zip_member *m, struct dt_error *err)
{
    unsigned char extra;

    while (m->z_open && !m->z_end) {
        size_t n = 0;
        enum dt_status s = inflate_some(m, &extra, 1, &n, err);
        if (s != DT_OK)
            return s;
        if (n > 0)
            return damaged(m, "more than the directory says follows", err);
    }
    if (m->z_open && (m->z.avail_in > 0 || m->taken < m->entry->packed))
        return damaged(m, "bytes that are not packed data follow", err);
    return m->crc == m->entry->crc ? DT_OK : damaged(m, "the check sum is wrong", err);
}

enum dt_status
zip_member_read(struct zip_member *m, void *buf, size_t want, size_t *got, struct dt_error *err)
{
    uint64_t left = m->entry->bytes - m->given;
    size_t n = want < left ? want : (size_t)left;

    *got = 0;
    enum dt_status s =
        m->z_open ? read_deflated(m, buf, n, got, err) : read_stored(m, buf, n, got, err);
    if (s != DT_OK)
        return s;
    for (size_t at = 0; at < n;) {
        unsigned part = n - at < INPUT_BYTES ? (unsigned)(n - at) : INPUT_BYTES;
        m->crc = (uint32_t)crc32(m->crc, (const Bytef *)buf + at, part);
        at += part;
    }
    m->given += n;
    return n < want ? check_end(m, err) : DT_OK;
}

uint64_t
zip_member_bytes(const struct zip_member *m)
{
    return m->entry->bytes;
}

const char *
zip_member_name(const struct zip_member *m)
{
    return m->name;
}
