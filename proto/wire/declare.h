/*
 * declare.h - DECLARE tells psd the variables of a job. Body frame: an array of declarations, all
 * variables of the job in order of declaration (those of other ps tasks too: they are compared).
 *
 * one declaration: [name, dtype "f32", shape array, optimizer, params map name -> float32, init kind,
 *                   init seed, task]
 * request fields: []      body: array of declarations
 * reply fields:   []      body: array, one element a variable of *this* task in order:
 *                         [index in the declared list, variable id, homes bin (one byte a slice: shard)]
 */
#ifndef DT_WIRE_DECLARE_H
#define DT_WIRE_DECLARE_H

#include "proto/base/error.h"
#include "proto/wire/envelope.h"

struct dt_optimizer_param {
    char name[24];
    float value;
};

struct dt_declaration {
    char name[DT_MAX_NAME + 1]; /* [A-Za-z0-9_./:-]+ */
    uint32_t n_dims;            /* 0 = scalar */
    uint64_t shape[DT_MAX_DIMS];
    char optimizer[24]; /* "sgd" */
    uint32_t n_params;
    struct dt_optimizer_param params[DT_MAX_OPTIMIZER_PARAMS]; /* sgd: lr */
    char init[24]; /* kind of initial values, compared only: "zeros", "glorot", "values", ... */
    uint64_t seed;
    uint32_t task;
};

/* Elements = product of the shape, computed in 128 bits; 0 if a dimension is 0 or the product passes 2^40. */
uint64_t dt_declaration_elements(const struct dt_declaration *d);
static inline uint32_t
dt_n_slices(uint64_t elements)
{
    return (uint32_t)((elements + DT_SLICE_ELEMENTS - 1) / DT_SLICE_ELEMENTS);
}
/* Elements of slice i of a variable with `elements`. */
static inline uint32_t
dt_slice_elements(uint64_t elements, uint32_t i)
{
    uint64_t left = elements - (uint64_t)i * DT_SLICE_ELEMENTS;
    return left < DT_SLICE_ELEMENTS ? (uint32_t)left : DT_SLICE_ELEMENTS;
}

void dt_declare_encode(struct dt_buffer *b, uint64_t request, uint64_t session); /* header */
void dt_declaration_encode(struct dt_buffer *body,
                           const struct dt_declaration *d); /* after dt_write_array(body, n) */
/* Reads one declaration (reader stands at it). DT_R_MALFORMED or DT_R_BAD_VALUE with a sentence. */
enum dt_status dt_declaration_decode(struct dt_reader *r, struct dt_declaration *d,
                                     struct dt_error *err);
/* DT_R_MISMATCH with "variable dense/kernel: shape: the job has [784, 10], this worker says [784, 20]". */
enum dt_status dt_declaration_compare(const struct dt_declaration *job,
                                      const struct dt_declaration *mine, struct dt_error *err);
/* FNV-1a 64 over the encoded bytes of all declarations in order: start with DT_FINGERPRINT_START and fold each. */
#define DT_FINGERPRINT_START 0xcbf29ce484222325ull
uint64_t dt_declaration_fingerprint(uint64_t so_far, const struct dt_declaration *d);

#endif
