/*
 * csv_line.h - private to csv.c: lines of a CSV file, split into cells.
 *
 * Commas part cells; a cell may stand in double quotes and then hold commas and doubled quotes ("a""b").
 * Blanks around a cell are dropped. Lines end with LF or CRLF; empty lines may stand at the end only.
 */
#ifndef TRAIN_CSV_LINE_H
#define TRAIN_CSV_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "worker/train/gzfile.h"

#define CSV_MAX_LINE (16u << 20)
#define CSV_MAX_COLUMNS (1u << 20)

struct csv_cell {
    const char *text; /* borrowed until the next line; not NUL-terminated */
    size_t len;
};

struct csv_reader {
    struct gzfile *f; /* owned */
    char *buf;        /* owned */
    size_t cap;
    size_t begin; /* buf[begin..end) is not read yet */
    size_t end;
    bool eof;
    uint64_t line;          /* number of the line in `cells`, from 1 */
    struct csv_cell *cells; /* owned */
    uint32_t n_cells;
    uint32_t cap_cells;
};

enum dt_status csv_open(struct csv_reader *r, const char *path, struct dt_error *err);
void csv_close(struct csv_reader *r);
/* Read and split the next line; *end when there is none. DT_E_DATA names file, line and column. */
enum dt_status csv_next(struct csv_reader *r, bool *end, struct dt_error *err);
/* "FILE:LINE: text" */
enum dt_status csv_fail(const struct csv_reader *r, struct dt_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A cell for a message: quoted, cut, without control characters. One of two static buffers a thread. */
const char *csv_show(const struct csv_cell *c);

#endif
