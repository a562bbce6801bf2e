/*
 * record_header.h - the first frame of a record (--record): with which options, data and kernels a rank trained.
 */
#ifndef CLI_RECORD_HEADER_H
#define CLI_RECORD_HEADER_H

#include "worker/cli/training.h"

#define RECORD_KERNEL_BYTES 64

struct record_header { /* zero-initialise */
    struct settings s; /* owned: as the rank was started; no psd, nothing that comes out */
    uint64_t rank;
    int threads;                      /* of the BLAS library */
    char kernel[RECORD_KERNEL_BYTES]; /* of the BLAS library */
    uint64_t data;                    /* fingerprint; 0: no data */
    bool final_values;                /* in the end the job's final values were pulled */
};

/* What --record is of no use to, DT_E_USAGE with the reason. Wants an --algorithm that exists. */
enum dt_status record_check_options(const struct settings *s, struct dt_error *err);
uint64_t record_data_fingerprint(const struct data *d); /* of both sets; 0: none */
/* The header of a training whose data and model are open; to be freed. NULL: memory is short. */
char *record_header_text(const struct training *t);
/* DT_E_DATA: not from this version of dtworker, or options that make no sense. `path` leads the error's text. */
enum dt_status record_header_read(const char *text, const char *path, struct record_header *h,
                                  struct dt_error *err);
void record_header_deinit(struct record_header *h);

#endif
