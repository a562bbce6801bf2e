/*
 * record.c - writes the record of a rank's exchanges.
 *
 * Invariants: a frame goes out in one write, so a killed worker leaves whole frames; after a failed write none
 * follows. Threads: the loop's alone.
 */
#include "worker/train/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "proto/base/buffer.h"
#include "worker/train/record_private.h"

struct record_writer {
    char path[PATH_MAX];
    int fd;
    uint64_t n_frames;
    uint64_t n_slices;
    uint64_t *held;         /* owned: the versions pulled last */
    struct dt_buffer frame; /* owned */
    struct dt_error failed; /* the first error */
};

bool
record_file_name(const char *dir, uint32_t rank, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/rank-%u.rec", dir, rank);

    return n > 0 && (size_t)n < size;
}

uint32_t
record_check(enum record_kind kind, uint64_t number, const void *payload, size_t bytes)
{
    return (uint32_t)XXH64(payload, bytes, number * 16 + (uint64_t)kind);
}

static void
fail(struct record_writer *w, enum dt_status status, const char *what)
{
    if (w->failed.code == DT_OK)
        dt_fail(&w->failed, status, "%s: %s", w->path, what);
}

static void
put(struct record_writer *w, const void *p, size_t n)
{
    if (!dt_buffer_append(&w->frame, p, n))
        fail(w, DT_E_NO_MEMORY, "memory is short");
}

static void
put_fixed(struct record_writer *w, uint64_t v, unsigned bytes)
{
    unsigned char le[8];

    for (unsigned i = 0; i < bytes; i++)
        le[i] = (unsigned char)(v >> (8 * i));
    put(w, le, bytes);
}

static void
put_varint(struct record_writer *w, uint64_t v)
{
    unsigned char b[10];
    size_t n = 0;

    for (; v >= 128; v >>= 7)
        b[n++] = (unsigned char)(v | 128);
    b[n++] = (unsigned char)v;
    put(w, b, n);
}

static void
begin(struct record_writer *w, enum record_kind kind)
{
    dt_buffer_clear(&w->frame);
    put_fixed(w, kind, 1);
    put_fixed(w, 0, 4);
}

static void
write_all(struct record_writer *w, const unsigned char *p, size_t n)
{
    while (n > 0 && w->failed.code == DT_OK) {
        ssize_t k = write(w->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            fail(w, DT_E_IO, k < 0 ? strerror(errno) : "nothing could be written");
            return;
        }
        p += k;
        n -= (size_t)k;
    }
}

static void
finish(struct record_writer *w)
{
    uint32_t bytes = (uint32_t)(w->frame.len - RECORD_HEAD_BYTES);

    if (w->failed.code != DT_OK)
        return;
    for (unsigned i = 0; i < 4; i++)
        w->frame.data[1 + i] = (unsigned char)(bytes >> (8 * i));
    uint32_t check = record_check((enum record_kind)w->frame.data[0], w->n_frames++,
                                  w->frame.data + RECORD_HEAD_BYTES, bytes);
    put_fixed(w, check, 4);
    write_all(w, w->frame.data, w->frame.len);
}

static int
open_new(const char *path)
{
    int fd;

    do
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

enum dt_status
record_create(const char *dir, uint32_t rank, struct record_writer **out, struct dt_error *err)
{
    struct record_writer *w = calloc(1, sizeof(*w));

    *out = NULL;
    if (!w)
        return dt_fail(err, DT_E_NO_MEMORY, "--record: memory is short");
    w->fd = -1;
    if (!record_file_name(dir, rank, w->path, sizeof(w->path))) {
        free(w);
        return dt_fail(err, DT_E_USAGE, "--record: the name of the directory is too long");
    }
    if (mkdir(dir, 0777) == 0 || errno == EEXIST)
        w->fd = open_new(w->path);
    if (w->fd < 0) {
        enum dt_status s =
            errno == EEXIST ? dt_fail(err, DT_E_CANT_CREATE,
                                      "%s is there already: remove it or record elsewhere", w->path)
                            : dt_fail(err, DT_E_CANT_CREATE, "%s: %s", w->path, strerror(errno));
        free(w);
        return s;
    }
    write_all(w, (const unsigned char *)RECORD_MAGIC, RECORD_MAGIC_BYTES);
    *out = w;
    return DT_OK;
}

void
record_write_header(struct record_writer *w, const char *text)
{
    begin(w, RECORD_HEADER);
    put(w, text, strlen(text));
    finish(w);
}

void
record_write_slices(struct record_writer *w, uint64_t first_step, const struct dtw_slice *slices,
                    uint64_t n)
{
    w->held = calloc(n ? n : 1, sizeof(*w->held));
    if (!w->held)
        fail(w, DT_E_NO_MEMORY, "memory is short");
    w->n_slices = w->held ? n : 0;
    begin(w, RECORD_SLICES);
    put_varint(w, first_step);
    for (uint64_t i = 0; i < n; i++) {
        put_varint(w, slices[i].variable);
        put_varint(w, slices[i].start);
        put_varint(w, slices[i].n);
    }
    finish(w);
}

/* Small numbers of either sign become small ones. */
static uint64_t
zigzag(uint64_t delta)
{
    return delta << 1 ^ (uint64_t)((int64_t)delta >> 63);
}

void
record_write_exchange(struct record_writer *w, enum record_kind kind,
                      const struct dtw_slice *slices, uint64_t pushed, uint64_t pulled)
{
    begin(w, kind);
    if (kind != RECORD_PULL) {
        put_fixed(w, pushed, 8);
        for (uint64_t i = 0; i < w->n_slices; i++)
            put_varint(w, slices[i].pushed == DTW_NO_VERSION ? 0 : slices[i].pushed - w->held[i]);
    }
    if (kind != RECORD_PUSH) {
        put_fixed(w, pulled, 8);
        for (uint64_t i = 0; i < w->n_slices; i++) {
            put_varint(w, zigzag(slices[i].pulled - w->held[i]));
            w->held[i] = slices[i].pulled;
        }
    }
    finish(w);
}

void
record_write_end(struct record_writer *w, enum record_end end, bool stopped, uint64_t final)
{
    begin(w, RECORD_END);
    put_fixed(w, end, 1);
    put_fixed(w, stopped, 1);
    put_fixed(w, final, 8);
    finish(w);
}

enum dt_status
record_close(struct record_writer *w, struct dt_error *err)
{
    enum dt_status s = DT_OK;

    if (!w)
        return DT_OK;
    if (close(w->fd) != 0 && errno != EINTR)
        fail(w, DT_E_IO, strerror(errno));
    if (w->failed.code != DT_OK)
        s = dt_fail(err, w->failed.code, "%s", w->failed.text);
    free(w->held);
    dt_buffer_deinit(&w->frame);
    free(w);
    return s;
}
