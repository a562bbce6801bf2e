/*
 * record_read.c - reads the record of a rank's exchanges, frame by frame.
 *
 * Invariant: nothing in the file is trusted: memory is bounded by the file's size, every frame has its check. Threads:
 * one at a time.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "worker/train/record_private.h"

#define MAX_SLICES (1u << 20)

struct record_reader {
    char path[PATH_MAX];
    FILE *f; /* owned */
    uint64_t offset, size;
    uint64_t n_frames;
    bool ended;
    unsigned char *payload; /* owned */
    size_t n, cap;
    uint64_t first_step;
    uint64_t n_slices;
    struct record_slice *slices; /* owned */
    uint64_t *made, *held;       /* owned, by slice */
};

struct cursor { /* over a payload; a wrong read sticks */
    const unsigned char *p;
    size_t left;
    bool failed;
};

const char *
record_path(const struct record_reader *r)
{
    return r->path;
}

uint64_t
record_n_slices(const struct record_reader *r)
{
    return r->n_slices;
}

const struct record_slice *
record_slices(const struct record_reader *r)
{
    return r->slices;
}

uint64_t
record_first_step(const struct record_reader *r)
{
    return r->first_step;
}

void
record_free(struct record_reader *r)
{
    if (!r)
        return;
    if (r->f)
        fclose(r->f);
    free(r->payload);
    free(r->slices);
    free(r->made);
    free(r->held);
    free(r);
}

static enum dt_status
damaged(const struct record_reader *r, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA, "%s: frame %llu at byte %llu %s", r->path,
                   (unsigned long long)r->n_frames, (unsigned long long)r->offset, what);
}

static enum dt_status
cut(const struct record_reader *r, struct dt_error *err)
{
    return dt_fail(err, DT_E_DATA,
                   "%s ends at byte %llu within the record: the file was cut, or its worker was "
                   "killed or still runs; such a job cannot be replayed",
                   r->path, (unsigned long long)r->size);
}

static enum dt_status
check_magic(struct record_reader *r, struct dt_error *err)
{
    char magic[RECORD_MAGIC_BYTES];
    size_t n = fread(magic, 1, sizeof(magic), r->f);

    if (memcmp(magic, RECORD_MAGIC, n) != 0)
        return dt_fail(err, DT_E_DATA, "%s is no record of this version of dtworker", r->path);
    r->offset = n;
    return n == sizeof(magic) ? DT_OK : cut(r, err);
}

enum dt_status
record_open(const char *path, struct record_reader **out, struct dt_error *err)
{
    struct record_reader *r = calloc(1, sizeof(*r));
    enum dt_status s = DT_OK;
    struct stat st;

    *out = NULL;
    if (!r)
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
    snprintf(r->path, sizeof(r->path), "%s", path);
    r->f = fopen(path, "re");
    if (!r->f || fstat(fileno(r->f), &st) != 0)
        s = dt_fail(err, DT_E_NO_INPUT, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        s = dt_fail(err, DT_E_NO_INPUT, "%s is no regular file", path);
    if (s == DT_OK) {
        r->size = (uint64_t)st.st_size;
        s = check_magic(r, err);
    }
    if (s != DT_OK) {
        record_free(r);
        return s;
    }
    *out = r;
    return DT_OK;
}

static uint64_t
get_fixed(struct cursor *c, unsigned bytes)
{
    uint64_t v = 0;

    if (c->failed || c->left < bytes) {
        c->failed = true;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)c->p[i] << (8 * i);
    c->p += bytes;
    c->left -= bytes;
    return v;
}

static uint64_t
get_varint(struct cursor *c)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && c->left > 0 && !c->failed; shift += 7) {
        unsigned char b = *c->p++;
        c->left--;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return v;
    }
    c->failed = true;
    return 0;
}

static bool
reserve(struct record_reader *r, size_t n)
{
    if (n <= r->cap)
        return true;
    unsigned char *bigger = realloc(r->payload, n);
    if (!bigger)
        return false;
    r->payload = bigger;
    r->cap = n;
    return true;
}

/* One frame's bytes into `payload`. */
static enum dt_status
read_frame(struct record_reader *r, enum record_kind *kind, struct dt_error *err)
{
    unsigned char head[RECORD_HEAD_BYTES];
    struct cursor c = {head + 1, 4, false};

    if (r->size - r->offset < sizeof(head) || fread(head, 1, sizeof(head), r->f) != sizeof(head))
        return cut(r, err);
    *kind = (enum record_kind)head[0];
    r->n = get_fixed(&c, 4);
    if (*kind < RECORD_HEADER || *kind > RECORD_END ||
        r->n > (*kind == RECORD_HEADER ? RECORD_MAX_HEADER : RECORD_MAX_PAYLOAD))
        return damaged(r, "is damaged", err);
    if (r->size - r->offset - sizeof(head) < r->n + RECORD_CHECK_BYTES)
        return cut(r, err);
    if (!reserve(r, r->n + RECORD_CHECK_BYTES))
        return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", r->path);
    if (fread(r->payload, 1, r->n + RECORD_CHECK_BYTES, r->f) != r->n + RECORD_CHECK_BYTES)
        return cut(r, err);
    c = (struct cursor){r->payload + r->n, RECORD_CHECK_BYTES, false};
    if (get_fixed(&c, 4) != record_check(*kind, r->n_frames, r->payload, r->n))
        return damaged(r, "is damaged: its check does not agree", err);
    r->offset += sizeof(head) + r->n + RECORD_CHECK_BYTES;
    return DT_OK;
}

/* Slices in order: those of a variable follow each other without a gap. */
static bool
is_next(const struct record_reader *r, const struct record_slice *s)
{
    const struct record_slice *last = r->n_slices ? &r->slices[r->n_slices - 1] : NULL;

    if (s->n == 0 || s->n > UINT32_MAX || s->start > UINT64_MAX / 8)
        return false;
    if (last && s->variable == last->variable)
        return s->start == last->start + last->n;
    return s->start == 0 && s->variable == (last ? last->variable + 1 : 0);
}

static bool
take_slices(struct record_reader *r, struct cursor *c)
{
    uint64_t max = r->n / 3 + 1; /* three bytes a slice at least */

    if (r->slices || max > MAX_SLICES)
        return false;
    r->slices = calloc(max, sizeof(*r->slices));
    r->made = calloc(max, sizeof(*r->made));
    r->held = calloc(max, sizeof(*r->held));
    if (!r->slices || !r->made || !r->held)
        return false;
    r->first_step = get_varint(c);
    while (c->left > 0 && !c->failed) {
        struct record_slice s = {(uint32_t)get_varint(c), get_varint(c), get_varint(c)};
        if (c->failed || !is_next(r, &s))
            return false;
        r->slices[r->n_slices++] = s;
    }
    return r->n_slices > 0;
}

static void
take_made(struct record_reader *r, struct cursor *c, struct record *out)
{
    out->pushed = get_fixed(c, 8);
    for (uint64_t i = 0; i < r->n_slices; i++) {
        uint64_t past = get_varint(c);
        r->made[i] = past == 0 ? DTW_NO_VERSION : r->held[i] + past;
    }
    out->made = r->made;
}

static void
take_held(struct record_reader *r, struct cursor *c, struct record *out)
{
    out->pulled = get_fixed(c, 8);
    for (uint64_t i = 0; i < r->n_slices; i++) {
        uint64_t z = get_varint(c);
        r->held[i] += z >> 1 ^ (0 - (z & 1));
    }
    out->held = r->held;
}

static bool
decode(struct record_reader *r, struct record *out)
{
    struct cursor c = {r->payload, r->n, false};

    if ((r->n_frames == 0) != (out->kind == RECORD_HEADER))
        return false;
    if (out->kind == RECORD_HEADER) {
        out->text = (const char *)r->payload;
        out->text_bytes = r->n;
        return true;
    }
    if (out->kind == RECORD_SLICES)
        return take_slices(r, &c);
    if (out->kind == RECORD_END) {
        out->end = (enum record_end)get_fixed(&c, 1);
        out->stopped = get_fixed(&c, 1) != 0;
        out->final = get_fixed(&c, 8);
        r->ended = true;
        return !c.failed && c.left == 0 && out->end <= RECORD_LOST;
    }
    if (record_has_push(out))
        take_made(r, &c, out);
    if (record_has_pull(out))
        take_held(r, &c, out);
    return !c.failed && c.left == 0 && r->n_slices > 0;
}

enum dt_status
record_next(struct record_reader *r, struct record *out, struct dt_error *err)
{
    *out = (struct record){.number = r->n_frames};
    if (r->ended)
        return dt_fail(err, DT_E_INTERNAL, "%s: there is nothing behind its end", r->path);
    enum dt_status s = read_frame(r, &out->kind, err);
    if (s != DT_OK)
        return s;
    if (!decode(r, out))
        return damaged(r, "makes no sense", err);
    if (r->ended && r->offset != r->size)
        return damaged(r, "is the end, but more follows", err);
    r->n_frames++;
    return DT_OK;
}
