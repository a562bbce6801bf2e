/*
 * safetensors.h - a model file: named float32 tensors and string metadata, in the safetensors format
 * (8 bytes header length, JSON header, data), readable by json + NumPy.
 *
 * Metadata that `dtworker train --save` writes and `eval` needs: format ("dtworker-model-1"), model
 * ("softmax"), input ("28,28"), classes ("10"), scale (features = raw * scale), job, step.
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include <stdint.h>

#include "proto/base/error.h"
#include "worker/train/model.h"

#define MODEL_FILE_FORMAT "dtworker-model-1"
#define MODEL_FILE_MAX_META 32
#define MODEL_FILE_MAX_HEADER                                                                      \
    (1u << 20) /* the format allows 100 MB; parsed JSON is many times as large */

struct model_file_meta {
    char key[32];
    char value[256];
};

struct model_file_tensor {
    char name[64];
    uint32_t n_dims; /* 0 = scalar */
    uint64_t shape[4];
    uint64_t elements;
    const float *data; /* borrowed (saving), or part of `storage` (loaded) */
};

struct model_file { /* zero-initialise */
    uint32_t n_meta;
    struct model_file_meta meta[MODEL_FILE_MAX_META];
    uint32_t n_tensors;
    struct model_file_tensor tensors[MODEL_MAX_VARIABLES]; /* in the order of the data */
    float *storage;                                        /* owned; NULL when saving */
};

/* Add one string, printf-like. DT_E_INTERNAL when it is too long or too many. */
enum dt_status model_file_add_meta(struct model_file *mf, struct dt_error *err, const char *key,
                                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Add one tensor; `data` is borrowed until the file was saved. */
enum dt_status model_file_add_tensor(struct model_file *mf, const char *name, uint32_t n_dims,
                                     const uint64_t *shape, const float *data,
                                     struct dt_error *err);
/* All that `eval` needs, from a model, the data set it was trained on and its values. job may be NULL. */
enum dt_status model_file_describe(struct model_file *mf, const struct model *m,
                                   const struct dataset *data, const float *const *values,
                                   const char *job, uint64_t step, struct dt_error *err);

/* Atomically: temporary file in the same directory, fsync, rename, fsync of the directory. On failure an
 * older file at `path` is untouched and nothing is left. DT_E_CANT_CREATE, DT_E_IO, DT_E_NO_MEMORY. Blocks. */
enum dt_status model_file_save(const char *path, const struct model_file *mf, struct dt_error *err);
/* Whether model_file_save could write there (asked before hours of training); makes nothing lasting. */
enum dt_status model_file_probe(const char *path, struct dt_error *err);

/* Everything is checked before memory is taken for it; allocates at most the file's size. On failure `mf` is
 * empty. DT_E_NO_INPUT, DT_E_DATA, DT_E_IO, DT_E_NO_MEMORY. */
enum dt_status model_file_load(const char *path, struct model_file *mf, struct dt_error *err);
void model_file_deinit(struct model_file *mf);

const char *model_file_meta(const struct model_file *mf, const char *key); /* NULL: none */
const struct model_file_tensor *model_file_find(const struct model_file *mf, const char *name);

#endif
