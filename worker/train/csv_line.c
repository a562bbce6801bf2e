/*
 * csv_line.c - see csv_line.h.
 *
 * Invariant: memory is one line (at most CSV_MAX_LINE) and its cells, whatever the file holds.
 * Threads: a reader belongs to one thread at a time.
 */
#include "worker/train/csv_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES (256u << 10)
#define SHOWN_BYTES 40

struct line {
    char *text;
    size_t len;
};

enum dt_status
csv_fail(const struct csv_reader *r, struct dt_error *err, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return dt_fail(err, DT_E_DATA, "%s:%llu: %s", gzfile_path(r->f), (unsigned long long)r->line,
                   text);
}

const char *
csv_show(const struct csv_cell *c)
{
    static _Thread_local char buffers[2][SHOWN_BYTES + 8];
    static _Thread_local unsigned next;
    char text[SHOWN_BYTES + 1];
    char *out = buffers[next++ % 2];
    size_t n = c->len < SHOWN_BYTES ? c->len : SHOWN_BYTES;

    for (size_t i = 0; i < n; i++)
        text[i] = c->text[i] >= ' ' && c->text[i] < 0x7f ? c->text[i] : '?';
    text[n] = '\0';
    snprintf(out, sizeof(buffers[0]), "'%s%s'", text, n < c->len ? "..." : "");
    return out;
}

enum dt_status
csv_open(struct csv_reader *r, const char *path, struct dt_error *err)
{
    memset(r, 0, sizeof(*r));
    enum dt_status s = gzfile_open(path, &r->f, err);
    if (s != DT_OK)
        return s;
    r->cap = FIRST_BYTES;
    r->buf = malloc(r->cap);
    return r->buf ? DT_OK : dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", path);
}

void
csv_close(struct csv_reader *r)
{
    gzfile_close(r->f);
    free(r->buf);
    free(r->cells);
    memset(r, 0, sizeof(*r));
}

/* Read on behind buf[end), with room made in front or at the end. */
static enum dt_status
fill(struct csv_reader *r, struct dt_error *err)
{
    size_t got;

    memmove(r->buf, r->buf + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    if (r->end == r->cap) {
        if (r->cap >= CSV_MAX_LINE) {
            r->line++;
            return csv_fail(r, err, "the line is longer than %u bytes: is this a CSV file?",
                            CSV_MAX_LINE);
        }
        char *p = realloc(r->buf, r->cap * 2);
        if (!p)
            return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", gzfile_path(r->f));
        r->buf = p;
        r->cap *= 2;
    }
    enum dt_status s = gzfile_read(r->f, r->buf + r->end, r->cap - r->end, &got, err);
    r->eof = got < r->cap - r->end;
    r->end += got;
    return s;
}

/* The next line without its end. */
static enum dt_status
next_line(struct csv_reader *r, struct line *line, bool *end, struct dt_error *err)
{
    size_t seen = 0;
    char *at = r->buf + r->begin;
    char *stop = memchr(at, '\n', r->end - r->begin);

    while (!stop && !r->eof) {
        seen = r->end - r->begin;
        enum dt_status s = fill(r, err);
        if (s != DT_OK)
            return s;
        at = r->buf + r->begin;
        stop = memchr(at + seen, '\n', r->end - r->begin - seen);
    }
    line->text = at;
    line->len = stop ? (size_t)(stop - at) : r->end - r->begin;
    *end = !stop && line->len == 0;
    r->begin += line->len + (stop ? 1 : 0);
    r->line += !*end;
    if (line->len > 0 && at[line->len - 1] == '\r')
        line->len--;
    return DT_OK;
}

static void
skip_byte_order_mark(struct line *line)
{
    if (line->len >= 3 && memcmp(line->text, "\xef\xbb\xbf", 3) == 0) {
        line->text += 3;
        line->len -= 3;
    }
}

static bool
is_blank(const struct line *line)
{
    for (size_t i = 0; i < line->len; i++) {
        if (line->text[i] != ' ' && line->text[i] != '\t')
            return false;
    }
    return true;
}

/* The next line that is not empty. */
static enum dt_status
next_filled_line(struct csv_reader *r, struct line *line, bool *end, struct dt_error *err)
{
    uint64_t empty = 0;

    for (;;) {
        enum dt_status s = next_line(r, line, end, err);
        if (s != DT_OK || *end)
            return s;
        if (r->line == 1)
            skip_byte_order_mark(line);
        if (!is_blank(line))
            break;
        empty = empty ? empty : r->line;
    }
    if (memchr(line->text, '\0', line->len))
        return csv_fail(r, err, "holds a zero byte: give CSV text in ASCII or UTF-8");
    if (empty == 0)
        return DT_OK;
    r->line = empty;
    return csv_fail(r, err, "the line is empty, but more lines follow: remove it");
}

static enum dt_status
add_cell(struct csv_reader *r, const char *text, size_t len, struct dt_error *err)
{
    if (r->n_cells == CSV_MAX_COLUMNS)
        return csv_fail(r, err, "has more than %u columns", CSV_MAX_COLUMNS);
    if (r->n_cells == r->cap_cells) {
        uint32_t cap = r->cap_cells ? r->cap_cells * 2 : 64;
        struct csv_cell *cells = realloc(r->cells, cap * sizeof(*cells));
        if (!cells)
            return dt_fail(err, DT_E_NO_MEMORY, "%s: memory is short", gzfile_path(r->f));
        r->cells = cells;
        r->cap_cells = cap;
    }
    r->cells[r->n_cells++] = (struct csv_cell){text, len};
    return DT_OK;
}

static size_t
skip_blanks(const struct line *line, size_t at)
{
    while (at < line->len && (line->text[at] == ' ' || line->text[at] == '\t'))
        at++;
    return at;
}

/* The cell whose opening quote stands at *at: doubled quotes become one in place. */
static enum dt_status
quoted_cell(struct csv_reader *r, const struct line *line, size_t *at, struct dt_error *err)
{
    char *t = line->text;
    size_t in = *at + 1;
    size_t out = in;
    size_t begin = in;

    for (; in < line->len; in++) {
        if (t[in] == '"') {
            if (in + 1 == line->len || t[in + 1] != '"')
                break;
            in++;
        }
        t[out++] = t[in];
    }
    if (in == line->len)
        return csv_fail(r, err,
                        "the quoted cell in column %u does not end on its line: line breaks inside "
                        "quotes are not read, remove them",
                        r->n_cells + 1);
    size_t next = skip_blanks(line, in + 1);
    if (next < line->len && t[next] != ',')
        return csv_fail(r, err,
                        "text follows the closing quote in column %u: double the quotes inside a "
                        "quoted cell",
                        r->n_cells + 1);
    *at = next;
    return add_cell(r, t + begin, out - begin, err);
}

static enum dt_status
plain_cell(struct csv_reader *r, const struct line *line, size_t *at, struct dt_error *err)
{
    const char *begin = line->text + *at;
    const char *comma = memchr(begin, ',', line->len - *at);
    size_t len = comma ? (size_t)(comma - begin) : line->len - *at;

    *at += len;
    while (len > 0 && (begin[len - 1] == ' ' || begin[len - 1] == '\t'))
        len--;
    return add_cell(r, begin, len, err);
}

enum dt_status
csv_next(struct csv_reader *r, bool *end, struct dt_error *err)
{
    struct line line;
    size_t at = 0;
    enum dt_status s = next_filled_line(r, &line, end, err);

    r->n_cells = 0;
    while (s == DT_OK && !*end) {
        at = skip_blanks(&line, at);
        if (at < line.len && line.text[at] == '"')
            s = quoted_cell(r, &line, &at, err);
        else
            s = plain_cell(r, &line, &at, err);
        if (at >= line.len)
            break;
        at++; /* the comma */
    }
    return s;
}
