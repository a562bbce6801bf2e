/*
 * fuzz_wire.c - one input for the decoders of the wire, in libFuzzer's form. The first byte picks the
 * decoder, the rest is the message. The oracle: no crash, no sanitizer report, and the invariants that
 * samples_decode checks (it aborts).
 *
 * With clang: -fsanitize=fuzzer,address,undefined (see CMakeLists.txt, PSD_FUZZ). With gcc replay.c
 * feeds it the corpus.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    unsigned char *copy;

    if (bytes == 0)
        return 0;
    /* in a block of its own size, so that a step too far is seen */
    copy = malloc(bytes > 1 ? bytes - 1 : 1);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, bytes - 1);
    samples_decode((enum decoder)(data[0] % N_DECODERS), copy, bytes - 1);
    free(copy);
    return 0;
}
