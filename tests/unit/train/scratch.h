/*
 * scratch.h - a directory for one test, removed with all that is in it; small files and IDX images.
 */
#ifndef TESTS_TRAIN_SCRATCH_H
#define TESTS_TRAIN_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/buffer.h"

struct scratch {
    char dir[64];
};

void scratch_open(struct scratch *s);
void scratch_close(struct scratch *s);
/* Path of `name` inside; one of four static buffers. */
const char *scratch_path(const struct scratch *s, const char *name);
unsigned scratch_count(const struct scratch *s); /* files inside */

void write_file(const char *path, const void *data, size_t len);
void read_file(const char *path, struct dt_buffer *out);
/* gzip `in` behind what is in `out`. */
void pack(struct dt_buffer *out, const void *in, size_t len);
/* An IDX ubyte file: element k is k % modulus. */
void make_idx(struct dt_buffer *out, unsigned n_dims, const unsigned *dims, unsigned modulus);
/* The shipped digits: <repository>/tests/data. */
const char *digits_path(void);

#endif
