/*
 * samples.h - every message once or more, encoded with extreme values; and one function that gives
 * bytes to a decoder by number. Shared by the unit tests and by tests/fuzz.
 */
#ifndef TEST_SAMPLES_H
#define TEST_SAMPLES_H

#include "proto/wire/data.h"
#include "proto/wire/declare.h"
#include "proto/wire/hello.h"
#include "proto/wire/member.h"
#include "proto/wire/params.h"
#include "proto/wire/placement.h"
#include "proto/wire/set.h"
#include "proto/wire/stats.h"

enum decoder { /* the first byte of a fuzz input, modulo N_DECODERS */
               DECODE_HELLO,
               DECODE_HELLO_REPLY,
               DECODE_STEP,
               DECODE_WAITING,
               DECODE_INIT_DONE,
               DECODE_DATA,
               DECODE_DATA_REPLY,
               DECODE_KICK,
               DECODE_HEAD,
               DECODE_PARAMS,
               DECODE_DECLARATIONS,
               DECODE_SKIP,
               DECODE_PLACEMENT,
               DECODE_SET,
               DECODE_ADMIN_SET,
               N_DECODERS
};

#define MAX_SAMPLES 64

struct sample {
    char name[40];
    enum decoder decoder;
    struct dt_buffer bytes;
};

struct samples {
    unsigned n;
    struct sample list[MAX_SAMPLES];
};

void samples_create(struct samples *s);
void samples_deinit(struct samples *s);

/* Decodes and checks the invariants of what was accepted; aborts when one does not hold. */
enum dt_status samples_decode(enum decoder decoder, const void *data, size_t bytes);

/* Extreme values. */
void sample_hello(struct dt_hello *m);
void sample_hello_reply(struct dt_hello_reply *m);
void sample_declaration(struct dt_declaration *d);
void sample_data(struct dt_data *m, uint32_t n_items);
void sample_data_reply(struct dt_data_reply *m, uint32_t n_items);

#endif
